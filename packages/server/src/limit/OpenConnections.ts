/** Number of open connections of all ports that count them. */
export class OpenConnections {
  count = 0
}
