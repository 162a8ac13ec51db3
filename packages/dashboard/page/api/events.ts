/** A stream of server-sent events, opened again when it ends. EventSource cannot send headers of restricted APIs. */
import { type Signal, signal } from "@preact/signals"
import { send } from "./http.ts"
import { Refusal } from "./Refusal.ts"

export interface Messages {
  /** Why the server refuses the stream; undefined while messages arrive, and while the server does not answer. */
  readonly problem: Signal<Refusal | undefined>
  /** Whether the stream is open, and its first message has arrived. */
  readonly isFlowing: Signal<boolean>
  /** Opens the stream, if it is not open. It stays open as long as the page. Asks for no secret if `isQuiet`. */
  readonly open: (isQuiet?: boolean) => void
}

/** Milliseconds before the next attempt. */
const retryMillis = 1_000

/** Longest event, in characters. */
const maxEvent = 64 * 1024 * 1024

/** Whether a later attempt fails as well, unless the user does something about it. */
export const isFinal = ({ status }: Refusal): boolean => status === 403 || status === 404

/** `path` is below the path of the page. */
export const messages = <A>(path: string, receive: (message: A) => void): Messages => {
  const problem = signal<Refusal | undefined>(undefined)
  const isFlowing = signal(false)
  let isOpen = false
  const read = async (isQuiet: boolean) => {
    for (;;) {
      try {
        const response = await send(new URL(path.replace(/^\//, ""), document.baseURI).pathname, {}, isQuiet)
        problem.value = undefined
        for await (const data of events(response)) {
          receive(JSON.parse(data))
          isFlowing.value = true
        }
      } catch (error) {
        const refusal = Refusal.of(error)
        problem.value = refusal.status === 0 ? undefined : refusal
        if (isFinal(refusal)) {
          isOpen = false
          return
        }
      } finally {
        isFlowing.value = false
      }
      await new Promise((resolve) => setTimeout(resolve, retryMillis))
    }
  }
  const open = (isQuiet = false) => {
    if (isOpen) return
    isOpen = true
    problem.value = undefined
    void read(isQuiet)
  }
  return { problem, isFlowing, open }
}

/** The data of the events of a response. */
export async function* events(response: Response): AsyncGenerator<string> {
  if (response.body === null) return
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader()
  let text = ""
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return
    text += value
    if (text.length > maxEvent) throw new Error("The server sent too large an event.")
    for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
      const lines = text.slice(0, end).split("\n")
      text = text.slice(end + 2)
      const data = lines.filter((line) => line.startsWith("data:")).map((line) => line.slice(5).replace(/^ /, ""))
      if (data.length > 0) yield data.join("\n")
    }
  }
}
