/**
 * The behaviour of one part of a model's sequences on the runner that owns it: takes over the stored sequences,
 * executes calls in the local model, and stores the sequences when it leaves.
 *
 *   owner ─► load, import ─► calls ··· ─► no call is left ─► export, store ─► the next owner may begin
 *                              └─ with `persist`: the state is stored ahead of each response
 *
 * A call that has arrived is executed, even if its caller leaves: a lost connection looks like a caller that leaves.
 * The call comes again by another connection.
 */
import { Clock, Deferred, Effect, Exit, Result, Schedule, Stream } from "effect"
import { type InferenceError, SequenceNotFound, Unavailable } from "@nereid/core/Errors"
import * as ProtobufCodec from "@nereid/core/internal/codec/protobuf/ProtobufCodec"
import * as SequencesDocument from "@nereid/core/internal/codec/json/SequencesDocument"
import type { Request } from "@nereid/core/internal/request/Request"
import * as MonotonicTime from "@nereid/core/internal/request/MonotonicTime"
import type { SequenceExport, SequenceSnapshot } from "@nereid/core/internal/request/SequenceExport"
import type { SequenceId } from "@nereid/core/internal/request/SequencePosition"
import * as SessionParameters from "@nereid/core/internal/request/SessionParameters"
import { stream, submitSingle } from "@nereid/core/internal/running/CallableModel"
import type { RunningModel } from "@nereid/core/internal/running/RunningModel"
import { idOf, isEnd } from "@nereid/core/internal/sequence/CorrelationId"
import { EndedSequences } from "@nereid/core/internal/sequence/EndedSequences"
import { validate, type Validated, wireResponse } from "@nereid/core/internal/wire/Validation"
import * as Failure from "../protocol/Failure.ts"
import type { Call } from "../protocol/SequenceEntity.ts"
import { keyOf } from "../protocol/SequencePart.ts"
import type { OwnedPart, SequenceStore, StoredSequence } from "../store/SequenceStore.ts"
import { type KnownSequence, KnownSequences, type ReplyBudget } from "./KnownSequences.ts"

/** Limits of one group of sequences that is stored. */
const group = { maxBytes: 8 * 1024 * 1024, maxSequences: 1000 }

/** How long running requests have to end before their part leaves, beyond what the cluster gives them. */
const exportWait = "5 seconds"

/** Attempts to store sequences before they are given up. */
const attempts = Schedule.max([Schedule.exponential("100 millis"), Schedule.recurs(5)])

/** Repeats what the storage has refused, unless another runner owns the part. */
const patiently = <A, E extends { readonly _tag: string }>(effect: Effect.Effect<A, E>): Effect.Effect<A, E> =>
  Effect.retry(effect, { schedule: attempts, while: ({ _tag }) => _tag === "SequenceStoreError" })

/** How long the last response of a sequence that has ended is stored, in milliseconds. */
const endedFor = 60_000

/** Sequences of a part that are remembered because they expired while they were stored. */
const maxExpired = 1000

export interface PartOwnerOptions {
  readonly model: RunningModel
  /** The number of the part. */
  readonly part: number
  readonly store: SequenceStore["Service"]
  /** Whether the state is stored ahead of each response. */
  readonly persist: boolean
  readonly replies: ReplyBudget
}

/** Runs an effect that nothing waits for. */
type Fork = (effect: Effect.Effect<void>) => unknown

type Outcome = Deferred.Deferred<Uint8Array, Failure.Failure>

/** The owner of the part until the scope closes, which stores its sequences. */
export const make = Effect.fnUntraced(function* (options: PartOwnerOptions) {
  const owner = new PartOwner(options, yield* Clock.Clock, Effect.runForkWith(yield* Effect.context<never>()))
  yield* Effect.acquireRelease(Effect.orDie(owner.restore), () => owner.save)
  return owner
})

export class PartOwner {
  readonly #options: PartOwnerOptions
  readonly #clock: Clock.Clock
  readonly #fork: Fork
  readonly #owned: OwnedPart
  readonly #known: KnownSequences
  /** Sequences that expired before this owner took the part. */
  readonly #expired = new EndedSequences(maxExpired)
  /** Calls that have no outcome yet, by name. */
  readonly #running = new Map<string, Outcome>()
  #isLeaving = false

  constructor(options: PartOwnerOptions, clock: Clock.Clock, fork: Fork) {
    this.#options = options
    this.#clock = clock
    this.#owned = { model: options.model.description.name, part: options.part, owner: crypto.randomUUID() }
    this.#fork = fork
    const { sequences } = options.model.life
    this.#known = new KnownSequences(options.replies, () => sequences?.ids(Infinity) ?? [])
  }

  /** Executes a call, or returns the outcome of the same call that came before. */
  infer(message: Call): Effect.Effect<Uint8Array, Failure.Failure> {
    return Effect.suspend(() => {
      if (this.#isLeaving) return Effect.interrupt
      const running = this.#running.get(message.call)
      if (running !== undefined) return Deferred.await(running)
      const validated = this.#validate(message)
      if (Result.isFailure(validated)) return Effect.fail(Failure.fromError(validated.failure))
      const id = idOf(validated.success.request.parameters)
      const known = id === undefined ? undefined : this.#known.find(id)
      if (known?.lastCall === message.call) return this.#repeated(known)
      const outcome: Outcome = Deferred.makeUnsafe()
      this.#running.set(message.call, outcome)
      this.#begin(message.call, validated.success, id, outcome)
      return Deferred.await(outcome)
    })
  }

  /** Executes a call with any number of responses. It is cancelled with its caller, and not repeated. */
  stream(message: Call): Stream.Stream<Uint8Array, Failure.Failure> {
    return Stream.suspend(() => {
      const { model } = this.#options
      const validated = this.#validate(message)
      if (Result.isFailure(validated)) return Stream.fail(Failure.fromError(validated.failure))
      const { request } = validated.success
      const id = idOf(request.parameters)
      if (id !== undefined) {
        const known = this.#known.get(id)
        if (known.lastCall === message.call)
          return Stream.fromEffect(this.#repeated({ ...known, lastReply: undefined }))
        this.#known.executed(known, message.call, undefined)
      }
      const responses = stream(model.calls, request).pipe(
        Stream.map((response) => ProtobufCodec.encode(wireResponse(model.description, validated.success, response))),
      )
      const known = id !== undefined && this.#options.persist ? this.#known.get(id) : undefined
      const stored = known === undefined ? responses : Stream.onEnd(responses, this.#persist(known, request))
      return Stream.mapError(stored, Failure.fromError)
    })
  }

  /** Takes over the sequences that the owner before has stored. */
  readonly restore = Effect.gen({ self: this }, function* () {
    const { model, store, persist } = this.#options
    const { name } = model.description
    const stored = yield* store.take(this.#owned)
    for (const sequence of stored) {
      const problem = this.#import(sequence)
      if (problem === undefined) continue
      yield* Effect.logWarning(`Sequence ${sequence.id} of model '${name}' is lost: ${problem.message}`)
    }
    if (!persist && stored.length > 0) {
      yield* store.remove(
        this.#owned,
        stored.map(({ id }) => id),
      )
    }
  }).pipe(patiently)

  /** Stores the sequences for the next owner. */
  readonly save = Effect.suspend(() => {
    this.#isLeaving = true
    const { model, part, store } = this.#options
    const { name } = model.description
    const { sequences } = model.life
    const ids = this.#known.all().map(({ id }) => id)
    if (sequences === undefined || sequences.problem !== undefined || ids.length === 0) return Effect.void
    const send = (exported: SequenceExport) =>
      Effect.as(
        patiently(store.put(this.#owned, this.#stored(exported))),
        exported.sequences.map(({ id }) => id),
      )
    return sequences.moveSequences(send, { ...group, ids, wait: exportWait }).pipe(
      Effect.catch((error) => {
        // The copies of the next owner go on.
        if (error._tag === "StoreTaken") for (const id of ids) this.#end(id)
        const message = `Sequences of model '${name}', part ${part}, stay on a runner that leaves: ${error.message}`
        return Effect.logWarning(message)
      }),
      Effect.andThen(Effect.sync(() => this.#known.clear())),
    )
  })

  #validate({ request, timeout }: Call): Result.Result<Validated, InferenceError> {
    const deadline = timeout === undefined ? undefined : MonotonicTime.millis(this.#clock) + timeout
    return Result.flatMap(ProtobufCodec.decode(request), (wire) =>
      validate(this.#options.model.description, wire, deadline),
    )
  }

  #repeated({ lastReply }: KnownSequence): Effect.Effect<Uint8Array, Failure.Failure> {
    if (lastReply !== undefined) return Effect.succeed(lastReply)
    const message = "the request was executed, but its response was lost with a connection between runners"
    return Effect.fail(Failure.fromError(new Unavailable({ message })))
  }

  /** Submits a request. With `persist`, once the state after the request before it is stored. */
  #begin(call: string, validated: Validated, id: SequenceId | undefined, outcome: Outcome): void {
    const known = id === undefined ? undefined : this.#known.get(id)
    const submit = () => this.#submit(call, validated, known, outcome)
    if (known === undefined || !this.#options.persist) return submit()
    if (known.isBusy) return void known.waiting.push(submit)
    known.isBusy = true
    submit()
  }

  #submit(call: string, validated: Validated, known: KnownSequence | undefined, outcome: Outcome): void {
    const { model, persist } = this.#options
    const { request } = validated
    const id = idOf(request.parameters)
    submitSingle(model.calls, request, (result) => {
      if (Result.isFailure(result)) {
        // The caller repeats an interrupted call, which reaches the next owner.
        if (this.#isLeaving && isMoved(result.failure)) return this.#settle(call, known, outcome, Exit.interrupt())
        if (known !== undefined && result.failure._tag === "SequenceNotFound") this.#known.delete(known)
        return this.#settle(call, known, outcome, Exit.fail(Failure.fromError(this.#errorOf(result.failure, id))))
      }
      const bytes = ProtobufCodec.encode(wireResponse(model.description, validated, result.success))
      if (known === undefined) return this.#settle(call, known, outcome, Exit.succeed(bytes))
      if (SessionParameters.isClose(request.parameters)) this.#known.delete(known)
      else this.#known.executed(known, call, bytes)
      if (!persist) return this.#settle(call, known, outcome, Exit.succeed(bytes))
      const stored = Effect.matchEager(this.#persist(known, request), {
        onSuccess: () => Exit.succeed(bytes),
        onFailure: (error) => Exit.fail(Failure.fromError(error)),
      })
      this.#fork(Effect.map(stored, (exit) => this.#settle(call, known, outcome, exit)))
    })
  }

  #settle(
    call: string,
    known: KnownSequence | undefined,
    outcome: Outcome,
    exit: Exit.Exit<Uint8Array, Failure.Failure>,
  ): void {
    this.#running.delete(call)
    Deferred.doneUnsafe(outcome, exit)
    if (known === undefined || !this.#options.persist) return
    const next = known.waiting.shift()
    if (next === undefined) known.isBusy = false
    else next()
  }

  /** Stores the state after a request. A sequence whose state cannot be stored is over, because it could not go on. */
  #persist(known: KnownSequence, { parameters }: Request): Effect.Effect<void, InferenceError> {
    const { model, store } = this.#options
    const { name } = model.description
    const key = keyOf(known.id)
    const ended: StoredSequence = {
      ...this.#storedCall(known),
      id: key,
      state: undefined,
      expiresAt: this.#now + endedFor,
    }
    const current = Effect.gen({ self: this }, function* () {
      const { sequences } = model.life
      if (sequences === undefined) return
      let isLive = false
      const send = (exported: SequenceExport) => {
        isLive = true
        // The sequence goes on here.
        return Effect.as(store.put(this.#owned, this.#stored(exported)), [])
      }
      yield* sequences.moveSequences(send, { ids: [known.id], wait: exportWait })
      if (!isLive) yield* store.remove(this.#owned, [key])
    })
    const change = SessionParameters.isClose(parameters)
      ? store.remove(this.#owned, [key])
      : isEnd(parameters)
        ? store.put(this.#owned, [ended])
        : current
    return Effect.catch(patiently(change), (error) => {
      this.#end(known.id)
      this.#known.delete(known)
      const reason = error._tag === "StoreTaken" ? "moved" : "failed"
      const message = `the state of sequence ${String(known.id)} of model '${name}' cannot be stored: ${error.message}`
      return Effect.andThen(Effect.logWarning(message), Effect.fail(new SequenceNotFound({ message, reason })))
    })
  }

  #stored({ sequences, ...head }: SequenceExport): ReadonlyArray<StoredSequence> {
    return sequences.map((sequence) => ({
      ...this.#storedCall(this.#known.find(sequence.id)),
      id: keyOf(sequence.id),
      state: JSON.stringify(SequencesDocument.document({ ...head, sequences: [sequence] })),
      expiresAt: this.#now + this.#maxIdleOf(sequence),
    }))
  }

  #storedCall(known: KnownSequence | undefined): Pick<StoredSequence, "lastCall" | "lastReply"> {
    return { lastCall: known?.lastCall, lastReply: known?.lastReply && Buffer.from(known.lastReply).toString("base64") }
  }

  /** Returns why the sequence is lost. */
  #import({ id: key, state, lastCall, lastReply, expiresAt }: StoredSequence): InferenceError | undefined {
    const { sequences } = this.#options.model.life
    const id = idOfKey(key)
    if (expiresAt <= this.#now) {
      if (state === undefined) return undefined
      const exported = SequencesDocument.read(new TextEncoder().encode(state))
      const [sequence] = Result.isSuccess(exported) ? exported.success.sequences : []
      this.#expired.add(id, { reason: "expired", idleMillis: this.#maxIdleOf(sequence) })
      return undefined
    }
    if (lastCall !== undefined) {
      const reply = lastReply === undefined ? undefined : new Uint8Array(Buffer.from(lastReply, "base64"))
      this.#known.executed(this.#known.get(id), lastCall, reply)
    }
    if (state === undefined || sequences === undefined) return undefined
    const imported = Result.flatMap(SequencesDocument.read(new TextEncoder().encode(state)), (exported) => {
      const first = sequences.importSequences(exported)
      if (Result.isFailure(first) || first.success[0]?.problem?._tag !== "AlreadyExists") return first
      // An earlier copy, which could not be stored when its part left this runner.
      this.#end(id)
      return sequences.importSequences(exported)
    })
    const problem = Result.isFailure(imported) ? imported.failure : imported.success[0]?.problem
    if (problem === undefined) this.#known.get(id)
    return problem
  }

  /** Ends a sequence in the local model. */
  #end(id: SequenceId): void {
    const { description, calls } = this.#options.model
    const inputs = description.signature.inputs.map(() => undefined)
    const parameters = SessionParameters.closing(id)
    submitSingle(calls, { id: "", inputs, rows: 1, parameters, deadline: undefined }, () => {})
  }

  /** The error of a sequence whose state is not here. One that has left, and did not come back, is lost. */
  #errorOf(error: InferenceError, id: SequenceId | undefined): InferenceError {
    if (error._tag !== "SequenceNotFound" || (error.reason !== "neverStarted" && !isMoved(error))) return error
    const { message } = error
    const expired = id === undefined ? undefined : this.#expired.get(id)
    if (expired !== undefined) {
      return new SequenceNotFound({ message, reason: "expired", idleMillis: expired.idleMillis })
    }
    return isMoved(error) ? new SequenceNotFound({ message, reason: "restarted" }) : error
  }

  /** Milliseconds that a sequence may be idle. */
  #maxIdleOf(sequence: SequenceSnapshot | undefined): number {
    const { sequencing } = this.#options.model.description
    return (sequence?.maxIdleNanos ?? sequencing?.maxIdle ?? Infinity) / 1e6
  }

  get #now(): number {
    return this.#clock.currentTimeMillisUnsafe()
  }
}

const isMoved = (error: InferenceError): boolean => error._tag === "SequenceNotFound" && error.reason === "moved"

const idOfKey = (key: string): SequenceId =>
  key.startsWith("UINT64 ") ? BigInt(key.slice("UINT64 ".length)) : key.slice("BYTES ".length)
