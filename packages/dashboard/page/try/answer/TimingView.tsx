/** How long a request took, and where, as far as the server tells. */
import { duration } from "../../live/Numbers.ts"
import type { Timed } from "../call/call.ts"

export const TimingView = ({ timed: { milliseconds: all, timing } }: { readonly timed: Timed }) => (
  <dl class="timing">
    <div>
      <dt>Latency</dt>
      <dd>{duration(all)}</dd>
    </div>
    {timing?.phases.map(([name, time]) => (
      <div key={name}>
        <dt>{name === "total" ? "in the server" : name}</dt>
        <dd>{duration(time)}</dd>
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
