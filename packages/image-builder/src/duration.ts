/** Default `build-timeout` of automatic builds: eight hours, as in nodepool, in seconds. */
export const BUILD_TIMEOUT = 28_800;

/** Units in milliseconds. */
const UNITS: Readonly<Record<string, number>> = {
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
};

/**
 * Parses a duration such as `90s`, `30m`, `12h`, `7d` or `2w` to milliseconds. Returns undefined for other texts,
 * including a number without a unit.
 */
export function parseDuration(text: string): number | undefined {
  const [, number, unit = ''] = /^(\d{1,6})([smhdw])$/.exec(text) ?? [];
  return number === undefined ? undefined : Number(number) * (UNITS[unit] ?? 0);
}
