/** Runs code in the decoupled model of Streams.ts. */
import type { CaseServer } from "../PythonCase.ts"
import { text } from "../PythonRepository.ts"

/** First elements of the responses. */
export const events = ({ client }: CaseServer, code: string) => client.events("decoupled", text("IN", code))
