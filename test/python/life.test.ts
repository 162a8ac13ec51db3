import { life } from "./cases/Life.ts"
import { loads } from "./cases/Loads.ts"
import { strictLoads } from "./cases/StrictLoads.ts"
import { testGroup } from "./PythonCase.ts"

testGroup(life)
testGroup(loads)
testGroup(strictLoads)
