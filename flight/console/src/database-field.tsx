// The database that statements and questions are for.
import { catalogNames } from "./catalog-names";
import { useCell } from "./cell";
import { database } from "./preferences";

/** A choice among the catalog's databases; its label is hidden where the page is narrow, so it is named for itself. */
export function DatabaseField() {
  const chosen = useCell(database);
  const known = useCell(catalogNames).databases;
  const databases = known.includes(chosen) ? known : [chosen, ...known];
  return (
    <label class="field">
      <span>Database</span>
      <select aria-label="Database" value={chosen} onChange={(event) => database.set(event.currentTarget.value)}>
        {databases.map((name) => <option>{name}</option>)}
      </select>
    </label>
  );
}
