/** A histogram, with a text for those who do not see it. */
export interface BarsProps {
  readonly title: string
  readonly counts: ReadonlyArray<number>
  readonly from: string
  readonly to: string
}

const height = 60

export const Bars = ({ title, counts, from, to }: BarsProps) => {
  const most = Math.max(1, ...counts)
  return (
    <figure class="histogram">
      <svg
        role="img"
        aria-label={`${title}, from ${from} to ${to}`}
        viewBox={`0 0 ${counts.length} ${height}`}
        preserveAspectRatio="none"
      >
        {counts.map((count, index) => {
          // A single value among thousands is still visible.
          const tall = count === 0 ? 0 : Math.max(1, (count / most) * height)
          return <rect key={index} x={index + 0.05} y={height - tall} width={0.9} height={tall} />
        })}
      </svg>
      <figcaption class="quiet">
        <span>{from}</span>
        <span>{to}</span>
      </figcaption>
    </figure>
  )
}
