/** Worker thread of Metronome.ts: sleeps for the requested time, then notifies the main thread. */
import { workerData } from "node:worker_threads"
import { asked, ended, type Shared } from "./Metronome.ts"

const { cells, delay }: Shared = workerData

for (let seen = 0; ;) {
  Atomics.wait(cells, asked, seen)
  // A new sleep request replaces the current one.
  do seen = Atomics.load(cells, asked)
  while (Atomics.wait(cells, asked, seen, delay[0]) !== "timed-out")
  Atomics.add(cells, ended, 1)
  Atomics.notify(cells, ended)
}
