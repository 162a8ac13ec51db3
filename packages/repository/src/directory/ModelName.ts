/** Names of models: those of their directories. A name with control characters would break lines of the log. */

/** Why no model may have this name; undefined if it may. */
export const problem = (name: string): string | undefined =>
  hasControl(name) ? `invalid name ${shown(name)}: the name of a model must not contain control characters` : undefined

/** The name for the log. Control characters are escaped, and the name is quoted. */
export const shown = (name: string): string =>
  hasControl(name)
    ? JSON.stringify(name).replaceAll(
        /[\x7f-\x9f]/g,
        (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
      )
    : name

const hasControl = (name: string): boolean => /\p{Cc}/u.test(name)
