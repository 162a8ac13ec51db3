import { expect, it } from "vitest"
import * as ProcessEnvironment from "./ProcessEnvironment.ts"

it("a process inherits only variables of the list; the owner's override all others", () => {
  const variables = ProcessEnvironment.make({
    from: {
      PATH: "/bin",
      LC_ALL: "C",
      PYTHONHOME: "/python",
      OMP_NUM_THREADS: "2",
      AWS_SECRET_ACCESS_KEY: "secret",
      DATABASE_URL: "secret",
      MY_A: "a",
      MY_B: "b",
    },
    inherit: ["MY_*"],
    interpreter: { VIRTUAL_ENV: "/env", PATH: "/env/bin:/bin", PYTHONHOME: undefined },
    own: { MY_B: "own" },
  })
  expect(variables).toEqual({
    PATH: "/env/bin:/bin",
    LC_ALL: "C",
    OMP_NUM_THREADS: "2",
    MY_A: "a",
    MY_B: "own",
    VIRTUAL_ENV: "/env",
  })
})
