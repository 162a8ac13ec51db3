/** How long a request took, and where, as far as the server tells. */
import type { Timed } from "../call/call.ts"
import { milliseconds } from "./Range.ts"

export const TimingView = ({ timed: { milliseconds: all, timing } }: { readonly timed: Timed }) => (
  <dl class="timing">
    <div>
      <dt>Latency</dt>
      <dd>{milliseconds(all)}</dd>
    </div>
    {timing?.phases.map(([name, duration]) => (
      <div key={name}>
        <dt>{name}</dt>
        <dd>{milliseconds(duration)}</dd>
      </div>
    ))}
    {timing?.batch !== undefined && (
      <div>
        <dt>Batch</dt>
        <dd>
          {timing.batch} {timing.batch === 1 ? "row" : "rows"}
        </dd>
      </div>
    )}
  </dl>
)
