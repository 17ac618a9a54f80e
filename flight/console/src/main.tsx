import { render } from "preact";

import { App } from "./app";
import { applyTheme } from "./preferences";
import "./styles.css";

applyTheme();
render(<App />, document.getElementById("app")!);
