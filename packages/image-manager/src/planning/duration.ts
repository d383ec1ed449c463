const SECOND = { name: 'second', seconds: 1 };
const UNITS = [
  { name: 'day', seconds: 86_400 },
  { name: 'hour', seconds: 3600 },
  { name: 'minute', seconds: 60 },
  SECOND,
];

/** `25 hours`, `90 minutes`: in the largest unit that gives at least two, rounded down; never below 0. */
export function durationInWords(seconds: number): string {
  const unit = UNITS.find((each) => seconds >= 2 * each.seconds) ?? SECOND;
  const count = Math.max(0, Math.floor(seconds / unit.seconds));
  return `${count} ${unit.name}${count === 1 ? '' : 's'}`;
}
