/** The total time that the steps of one request took in their models, for the ensemble's statistics. */
import type { ComputeDurations } from "../metrics/ModelStatistics.ts"
import type { Trace, TracePoint } from "../request/Request.ts"

/** In nanoseconds. Right once every execution that has begun has ended. */
export class StepDurations implements Trace, ComputeDurations {
  input = 0
  infer = 0
  output = 0

  at(point: TracePoint, nanos: number): void {
    switch (point) {
      case "COMPUTE_START":
        this.input -= nanos
        return
      case "COMPUTE_INPUT_END":
        this.input += nanos
        this.infer -= nanos
        return
      case "COMPUTE_OUTPUT_START":
        this.infer += nanos
        this.output -= nanos
        return
      case "COMPUTE_END":
        this.output += nanos
    }
  }
}
