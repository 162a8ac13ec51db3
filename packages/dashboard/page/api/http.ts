/** Requests to the server, all to the page's own origin. */
import { Refusal } from "./Refusal.ts"
import { ask, restrictedHeader, secretHeaders } from "./secrets.ts"

/**
 * Sends a request, and asks for the header of a restricted API, unless `isQuiet`.
 *
 * @throws Refusal for an error of the server, or no answer
 */
export const send = async (path: string, init: RequestInit = {}, isQuiet = false): Promise<Response> => {
  for (;;) {
    const headers = { ...secretHeaders(), ...Object.fromEntries(new Headers(init.headers)) }
    const response = await fetch(path, { ...init, headers }).catch((cause: unknown) => {
      if (init.signal?.aborted === true) throw cause
      throw new Refusal("The server does not answer.", 0)
    })
    if (response.ok) return response
    const refusal = await Refusal.from(response)
    const header = refusal.status === 403 ? restrictedHeader(refusal.message) : undefined
    if (header === undefined || isQuiet || !(await ask(header))) throw refusal
  }
}

/** The JSON of a response, whose type the caller knows from the protocol. */
export const json = async <A>(path: string, init?: RequestInit): Promise<A> => {
  const response = await send(path, init)
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion
  return (await response.json()) as A
}

export const post = (path: string, body: unknown, signal?: AbortSignal): Promise<Response> =>
  send(path, {
    method: "POST",
    body: JSON.stringify(body),
    headers: { "content-type": "application/json" },
    ...(signal && { signal }),
  })
