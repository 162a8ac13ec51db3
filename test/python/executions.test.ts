import { executions } from "./cases/Executions.ts"
import { streams } from "./cases/Streams.ts"
import { testGroup } from "./PythonCase.ts"

testGroup(executions)
testGroup(streams)
