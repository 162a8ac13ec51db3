/** A sequence that the form keeps between its requests, as the server has it. Pure: Try.tsx sends the requests. */
import type { Sequences } from "../../api/Model.ts"
import type { Refusal } from "../../api/Refusal.ts"
import { Invalid } from "../Invalid.ts"
import type { SequenceStep } from "./Attempt.ts"

export interface Session {
  /** As the form has it. */
  readonly id: string
  /** Requests that have succeeded since the start of the sequence; the server has it if there are any. */
  readonly answered: number
}

/** Longest text of an id, in bytes. */
const maxIdBytes = 128

const maxNumber = 2n ** 64n - 1n

export const begin = (): Session => ({ id: madeId(), answered: 0 })

/** From 1 to 2^53 - 1, which every client can have as a number. */
export const madeId = (): string => {
  const [random = 0n] = crypto.getRandomValues(new BigUint64Array(1))
  return String(BigInt.asUintN(53, random) || 1n)
}

/** @throws Invalid for an id that cannot be sent */
export const stepOf = ({ id, answered }: Session, sequences: Sequences, isEnd: boolean): SequenceStep => ({
  id: idOf(id, sequences),
  isStart: answered === 0,
  isEnd,
})

/** A sequence of one request. */
export const wholeStep = (id: string, { hasTextIds }: Sequences): SequenceStep => ({
  id: hasTextIds ? id : BigInt(id),
  isStart: true,
  isEnd: true,
})

/** Digits are a number, unless the model has texts alone. */
const idOf = (text: string, { hasTextIds }: Sequences): bigint | string => {
  if (!hasTextIds && /^[0-9]+$/.test(text)) {
    const number = BigInt(text)
    if (number === 0n || number > maxNumber) throw new Invalid(`the sequence id must be from 1 to ${maxNumber}`)
    return number
  }
  const bytes = new TextEncoder().encode(text).length
  if (bytes === 0) throw new Invalid("the sequence id is missing")
  if (bytes > maxIdBytes) throw new Invalid(`the sequence id has ${bytes} bytes, more than ${maxIdBytes}`)
  return text
}

/** The sequence after a request: another one after an end. */
export const afterAnswer = (session: Session, { isEnd }: SequenceStep): Session =>
  isEnd ? begin() : { ...session, answered: session.answered + 1 }

/** The sequence after a request that has failed: it begins anew if the server does not have it any more. */
export const afterFailure = (session: Session, { tag, message }: Refusal): Session =>
  tag === "SequenceNotFound" || message.includes("must specify the START flag") ? { ...session, answered: 0 } : session
