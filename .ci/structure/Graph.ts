/** Directed graphs of names: strongly connected components, mutual edges, and the edges that no order can avoid. */

/** Edges by the node from which they start. Every node is a key, also one without edges. */
export type Graph = ReadonlyMap<string, ReadonlySet<string>>

export type Edge = readonly [from: string, to: string]

export const edges = (graph: Graph): ReadonlyArray<Edge> =>
  [...graph].flatMap(([from, targets]) => [...targets].map((to): Edge => [from, to]))

/** Pairs of nodes with edges in both directions, each pair once. */
export const mutual = (graph: Graph): ReadonlyArray<Edge> =>
  edges(graph).filter(([from, to]) => from < to && graph.get(to)?.has(from) === true)

/** Strongly connected components of two nodes or more (Tarjan 1972), the largest first. */
export const components = (graph: Graph): ReadonlyArray<ReadonlyArray<string>> => {
  const found: Array<ReadonlyArray<string>> = []
  const indices = new Map<string, number>()
  const low = new Map<string, number>()
  const stack: Array<string> = []
  const open = new Set<string>()
  const visit = (node: string): number => {
    const index = indices.size
    let lowest = index
    indices.set(node, index)
    stack.push(node)
    open.add(node)
    for (const next of graph.get(node) ?? []) {
      if (!indices.has(next)) lowest = Math.min(lowest, visit(next))
      else if (open.has(next)) lowest = Math.min(lowest, indices.get(next) ?? index)
    }
    low.set(node, lowest)
    if (lowest === index) {
      const component = stack.splice(stack.indexOf(node))
      for (const each of component) open.delete(each)
      if (component.length > 1) found.push(component.toSorted())
    }
    return lowest
  }
  for (const node of graph.keys()) if (!indices.has(node)) visit(node)
  return found.toSorted((one, other) => other.length - one.length)
}

/**
 * The edges that run back in the best order of the nodes: the minimum feedback arc set. Exact for components of at most
 * `largestExact` nodes, which takes 2^n steps of n operations; for larger ones the result of a local search, which is
 * the same in every run.
 */
export const backEdges = (graph: Graph, largestExact = 18): ReadonlyArray<Edge> =>
  components(graph).flatMap((nodes) => {
    const order = nodes.length > largestExact ? improved(graph, nodes) : best(graph, nodes)
    const positions = new Map(order.map((node, index) => [node, index]))
    return edges(graph).filter(([from, to]) => {
      const [start, end] = [positions.get(from), positions.get(to)]
      return start !== undefined && end !== undefined && start < end
    })
  })

/**
 * Dynamic programming over the sets of nodes that stand first. An edge is to point to a node that stands before its
 * start.
 */
const best = (graph: Graph, nodes: ReadonlyArray<string>): ReadonlyArray<string> => {
  const bits = new Map(nodes.map((node, index) => [node, 1 << index]))
  const sources = nodes.map((node) =>
    nodes.reduce((set, other) => (graph.get(other)?.has(node) === true ? set | (bits.get(other) ?? 0) : set), 0),
  )
  const size = 1 << nodes.length
  const costs = new Int32Array(size).fill(-1)
  const last = new Int8Array(size)
  costs[0] = 0
  for (let set = 0; set < size; set++) {
    for (let node = 0; node < nodes.length; node++) {
      if ((set & (1 << node)) !== 0) continue
      const next = set | (1 << node)
      const cost = (costs[set] ?? 0) + bitCount(set & (sources[node] ?? 0))
      if (costs[next] !== -1 && cost >= (costs[next] ?? 0)) continue
      costs[next] = cost
      last[next] = node
    }
  }
  const order: Array<string> = []
  for (let set = size - 1; set > 0; set &= ~(1 << (last[set] ?? 0))) order.push(nodes[last[set] ?? 0] ?? "")
  return order.toReversed()
}

const bitCount = (bits: number): number => {
  let count = 0
  for (let rest = bits; rest !== 0; rest &= rest - 1) count += 1
  return count
}

/** Moves single nodes to their best place until no move makes the order better. */
const improved = (graph: Graph, nodes: ReadonlyArray<string>): ReadonlyArray<string> => {
  const order = nodes.toSorted((one, other) => (graph.get(one)?.size ?? 0) - (graph.get(other)?.size ?? 0))
  for (let hasMoved = true; hasMoved;) {
    hasMoved = false
    for (const node of nodes) {
      const from = order.indexOf(node)
      order.splice(from, 1)
      const to = bestPlace(graph, order, node, from)
      order.splice(to, 0, node)
      hasMoved ||= to !== from
    }
  }
  return order
}

/** The place for a node among the others with the fewest edges that run back; `from` unless another place is better. */
const bestPlace = (graph: Graph, others: ReadonlyArray<string>, node: string, from: number): number => {
  const costs = [others.filter((other) => graph.get(node)?.has(other)).length]
  for (const [index, other] of others.entries()) {
    const before = costs[index] ?? 0
    costs.push(before - (graph.get(node)?.has(other) === true ? 1 : 0) + (graph.get(other)?.has(node) === true ? 1 : 0))
  }
  const lowest = Math.min(...costs)
  return costs[from] === lowest ? from : costs.indexOf(lowest)
}
