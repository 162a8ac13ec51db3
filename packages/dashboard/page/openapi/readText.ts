/** Reads answers of any length, for the operations of the API view. */

/** Characters of an answer that are shown. */
const maxText = 100_000

/** Reads the text of a response, and reports what has arrived. Ends a response that is too long to be shown. */
export const readText = async (response: Response, onText: (text: string) => void): Promise<string> => {
  if (response.body === null) return ""
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
  let text = ""
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return text
    text += value
    if (text.length > maxText) {
      void reader.cancel()
      return `${text.slice(0, maxText)}…`
    }
    onText(text)
  }
}

/** JSON with line breaks; any other text as it is. */
export const indented = (response: Response, text: string): string => {
  if (response.headers.get("content-type")?.startsWith("application/json") !== true) return text
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return text
  }
}
