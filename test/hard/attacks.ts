/** All attacks, the shorter ones first. */
import type { Attack } from "./Attack.ts"
import * as Cancellations from "./Cancellations.ts"
import * as Clocks from "./Clocks.ts"
import * as Descriptors from "./Descriptors.ts"
import * as Disks from "./Disks.ts"
import * as Floods from "./Floods.ts"
import * as HeldMemory from "./HeldMemory.ts"
import * as Mutations from "./Mutations.ts"
import * as PythonMisconduct from "./PythonMisconduct.ts"
import * as PythonProcesses from "./PythonProcesses.ts"
import * as Reloads from "./Reloads.ts"
import * as Sequences from "./Sequences.ts"
import * as SlowClients from "./SlowClients.ts"
import * as Soak from "./Soak.ts"
import * as Workers from "./Workers.ts"

export const attacks: ReadonlyArray<Attack> = [
  Cancellations.flood,
  HeldMemory.incompleteBodies,
  HeldMemory.unreadResponses,
  Descriptors.exhausted,
  Descriptors.beyondTheCap,
  Disks.full,
  SlowClients.trickle,
  Cancellations.besideCalls,
  Sequences.storm,
  Clocks.jumps,
  Floods.everyKind,
  Workers.deadThreads,
  PythonProcesses.orphans,
  PythonMisconduct.misconduct,
  PythonMisconduct.noSpace,
  PythonProcesses.kills,
  PythonProcesses.leaks,
  Reloads.reloads,
  Mutations.mutations,
  Soak.soak,
]
