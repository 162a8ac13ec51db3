/** Repeats the request of the form, and shows latencies, throughput, errors and batch sizes. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks"
import { duration } from "../../live/Numbers.ts"
import { Bars } from "../answer/Bars.tsx"
import type { Attempt } from "../call/Attempt.ts"
import { measure, prepare } from "../call/call.ts"
import { attempt as attempted, Invalid } from "../Invalid.ts"
import { histogram } from "./Latencies.ts"
import { limits, type LoadResult, run, summary } from "./Load.ts"

/** Time between two drawings of the results, in milliseconds. */
const interval = 200

export const Repeat = ({ attempt }: { readonly attempt: Attempt | Invalid }) => {
  const [requests, setRequests] = useState(100)
  const [concurrency, setConcurrency] = useState(4)
  const [result, setResult] = useState<LoadResult>()
  const [problem, setProblem] = useState("")
  const [isRunning, setRunning] = useState(false)
  const controller = useRef<AbortController | undefined>(undefined)
  useEffect(() => () => controller.current?.abort(), [])

  const start = async () => {
    const prepared = attempt instanceof Invalid ? attempt : attempted(() => prepare(attempt))
    if (prepared instanceof Invalid) return setProblem(`The request cannot be sent: ${prepared.message}.`)
    const options = {
      requests: within(requests, limits.requests),
      concurrency: within(concurrency, limits.concurrency),
    }
    setProblem("")
    setRequests(options.requests)
    setConcurrency(options.concurrency)
    setRunning(true)
    const abort = new AbortController()
    controller.current = abort
    let drawn = 0
    const last = await run(
      options,
      (signal) => measure(prepared, signal),
      abort.signal,
      now,
      (progress) => {
        if (now() - drawn < interval) return
        drawn = now()
        // The lists are those of the run, which adds to them.
        setResult({ ...progress, latencies: progress.latencies.slice() })
      },
    )
    setResult(last)
    setRunning(false)
  }
  return (
    <details class="repeat">
      <summary>Repeat it</summary>
      <div class="row">
        <label class="short">
          Requests
          <input
            type="number"
            min={1}
            max={limits.requests}
            value={requests}
            onInput={(event) => setRequests(event.currentTarget.valueAsNumber)}
          />
        </label>
        <label class="short">
          At the same time
          <input
            type="number"
            min={1}
            max={limits.concurrency}
            value={concurrency}
            onInput={(event) => setConcurrency(event.currentTarget.valueAsNumber)}
          />
        </label>
        <button type="button" disabled={isRunning} onClick={() => void start()}>
          Start
        </button>
        <button type="button" class="plain" disabled={!isRunning} onClick={() => controller.current?.abort()}>
          Stop
        </button>
      </div>
      <p class="quiet">
        Up to {limits.requests.toLocaleString("en")} requests, {limits.concurrency} at the same time. Browsers use about
        6 connections to a server without HTTP/2, and further requests wait for one in the browser, which their latency
        includes. <code>nereid bench</code> has no such limit.
      </p>
      <p role="alert">{problem}</p>
      {result !== undefined && <Result result={result} isRunning={isRunning} wanted={requests} />}
    </details>
  )
}

const now = () => performance.now()

const within = (value: number, most: number): number =>
  Number.isFinite(value) ? Math.max(1, Math.min(most, Math.trunc(value))) : 1

interface ResultProps {
  readonly result: LoadResult
  readonly isRunning: boolean
  readonly wanted: number
}

const Result = ({ result, isRunning, wanted }: ResultProps) => {
  const { done, failed, perSecond, mean, p50, p95, p99 } = useMemo(() => summary(result), [result])
  const buckets = useMemo(() => histogram(result.latencies), [result])
  const figures: ReadonlyArray<readonly [string, string]> = [
    ["Throughput", `${perSecond.toFixed(perSecond < 100 ? 1 : 0)} / s`],
    ["Mean", duration(mean)],
    ["p50", duration(p50)],
    ["p95", duration(p95)],
    ["p99", duration(p99)],
  ]
  return (
    <section aria-label="Results of the repetition">
      <p role="status">
        {isRunning ? `${done} of ${wanted} done` : `${done} done${failed > 0 ? `, ${failed} failed` : ""}`}
      </p>
      <dl class="timing">
        {figures.map(([term, value]) => (
          <div key={term}>
            <dt>{term}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      {buckets.length > 0 && (
        <Bars
          title="Histogram of latencies"
          counts={buckets.map(({ count }) => count)}
          from={duration(buckets[0]?.from ?? 0)}
          to={duration(buckets.at(-1)?.to ?? 0)}
        />
      )}
      {result.batches.size > 0 && (
        <Counts
          title="Batch sizes"
          counts={[...result.batches]
            .toSorted(([one], [other]) => one - other)
            .map(([rows, count]) => [`${rows}`, count])}
        />
      )}
      {result.errors.size > 0 && <Counts title="Errors" counts={[...result.errors]} />}
    </section>
  )
}

interface CountsProps {
  readonly title: string
  readonly counts: ReadonlyArray<readonly [name: string, count: number]>
}

/** Kinds that are shown. */
const maxKinds = 50

const Counts = ({ title, counts }: CountsProps) => (
  <table class="counts">
    <caption>{title}</caption>
    <tbody>
      {counts.slice(0, maxKinds).map(([name, count]) => (
        <tr key={name}>
          <th scope="row">{name}</th>
          <td class="number">{count}</td>
        </tr>
      ))}
    </tbody>
  </table>
)
