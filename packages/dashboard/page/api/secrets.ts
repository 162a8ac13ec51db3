/**
 * Headers that restricted APIs ask for. The page asks for each once, and keeps it in this tab: `sessionStorage` is gone
 * with the tab, and no other tab reads it.
 */
import { signal } from "@preact/signals"

const key = "nereid.headers"

type Headers = Readonly<Record<string, string>>

const stored = (): Headers => {
  try {
    const json: unknown = JSON.parse(sessionStorage.getItem(key) ?? "{}")
    if (typeof json !== "object" || json === null) return {}
    return Object.fromEntries(Object.entries(json).map(([name, value]) => [name, String(value)]))
  } catch {
    return {}
  }
}

let headers = stored()

/** Headers to send with each request. */
export const secretHeaders = (): Headers => headers

export interface Question {
  readonly header: string
  readonly isWrong: boolean
  /** Continues the request; undefined if the user declines. */
  readonly answer: (value: string | undefined) => void
}

/** The question that the page asks now. */
export const question = signal<Question | undefined>(undefined)

const asked = new Map<string, Promise<boolean>>()
const declined = new Set<string>()

/** The header that a refusal asks for. */
export const restrictedHeader = (message: string): string | undefined =>
  /restricted, expecting header '([^']+)'/.exec(message)?.[1]

/** Asks for a header, once for all requests that need it. Returns whether there is a new value. */
export const ask = (header: string): Promise<boolean> => {
  if (declined.has(header)) return Promise.resolve(false)
  const pending = asked.get(header)
  if (pending !== undefined) return pending
  const answered = new Promise<boolean>((resolve) => {
    const answer = (value: string | undefined) => {
      question.value = undefined
      asked.delete(header)
      if (value === undefined) declined.add(header)
      else keep({ ...headers, [header]: value })
      resolve(value !== undefined)
    }
    question.value = { header, isWrong: header in headers, answer }
  })
  asked.set(header, answered)
  return answered
}

const keep = (next: Headers) => {
  headers = next
  try {
    sessionStorage.setItem(key, JSON.stringify(next))
  } catch {
    // Storage may be turned off; the headers then last until the page is reloaded.
  }
}

/** Makes the page ask again for what the user has declined. */
export const askAgain = (): void => declined.clear()
