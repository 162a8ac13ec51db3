/** The place of a line of the log in a model's code, such as `model.py:12`; undefined for lines of the server. */
import { Context } from "effect"

export const LogSource = Context.Reference<string | undefined>("@nereid/core/internal/running/LogSource", {
  defaultValue: () => undefined,
})
