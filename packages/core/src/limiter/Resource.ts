/**
 * Resources that the executions of instances share, such as memory of a device: how many units an execution holds, and
 * how many there are. Capacities.ts compares the two.
 */

/** Units of a resource that one execution of an instance holds. */
export interface Resource {
  /** Name, with regard to case. */
  readonly name: string
  /** Number of units, an integer from 0. */
  readonly count: number
  /** Whether all devices share the units. Default false: each device has its own. */
  readonly global?: boolean
}

/** Units of a resource that there are. */
export interface ResourceLimit {
  /** Name, with regard to case. */
  readonly name: string
  /** Number of units, an integer from 0. */
  readonly count: number
  /** Device that has the units; 0 includes the CPU. Default: each device has that many. */
  readonly device?: number
}

/** Settings of an instance group for the rate limiter. */
export interface GroupLimits {
  /** Units that one execution of an instance holds. Default none: the instance never waits for others. */
  readonly resources?: ReadonlyArray<Resource>
  /** Weight of each execution, an integer from 0: with 2, half as many executions as with 1. 0 counts as 1. Default 1. */
  readonly priority?: number
}
