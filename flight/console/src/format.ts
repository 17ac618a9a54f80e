// Numbers, durations and times for people.

export function count(value: number, one: string, many = `${one}s`): string {
  return `${value.toLocaleString("en-US")} ${value === 1 ? one : many}`;
}

export function duration(ms: number): string {
  // The unit is that of what is written: 59.96 s are 1 min 0 s, and no 60.0 s.
  if (ms < 999.5) return `${Math.round(ms)} ms`;
  if (ms < 9_995) return `${(ms / 1000).toFixed(2)} s`;
  if (ms < 59_950) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  return `${Math.floor(seconds / 60)} min ${seconds % 60} s`;
}

export function bytes(value: number): string {
  if (value < 1000) return count(value, "byte");
  const units = ["kB", "MB", "GB", "TB"];
  let at = 0;
  value /= 1000;
  while (value >= 999.5 && at < units.length - 1) {
    value /= 1000;
    at++;
  }
  return `${value.toFixed(value < 9.95 ? 1 : 0)} ${units[at]}`;
}

export function time(at: number | string): string {
  const date = new Date(at);
  const isToday = date.toDateString() === new Date().toDateString();
  return isToday ? date.toLocaleTimeString() : date.toLocaleString();
}
