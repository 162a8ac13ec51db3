import { render } from "preact"
import { App } from "./app/App.tsx"

const root = document.querySelector("#page")
if (root !== null) render(<App />, root)
