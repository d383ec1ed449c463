import { formatBytes } from '@nodepool-builder/image-builder/internal';
import type { Reading } from '../protocol/running-job.ts';
import { formatAge } from '../terms/units.ts';

/** Formats progress: `35 %, 12.3 MiB/s, 3 min left`, or `waiting for a free builder` before the start. */
export function progressText(reading: Shown): string {
  const percent = typeof reading.percent === 'number' ? `, ${reading.percent} %` : '';
  return `${percent}${waitRateAndTimeLeft(reading)}`.slice(', '.length);
}

/** A reading, or a record that contains one. */
type Shown = { readonly [K in keyof Reading]?: unknown };

/** Formats the part after the percentage: `, 12.3 MiB/s, 3 min left`. */
export function waitRateAndTimeLeft(reading: Shown): string {
  const { phase, waiting, retrying, 'bytes-per-second': rate, 'seconds-left': left } = reading;
  const texts = [
    ...(typeof phase === 'string' ? [`in ${phase}`] : []),
    ...(typeof waiting === 'string' ? [`waiting for ${waiting}`] : []),
    ...(typeof retrying === 'string' ? [`retrying${untilRetry(reading)}: ${retrying}`] : []),
    ...(typeof rate === 'number' ? [`${formatBytes(rate)}/s`] : []),
    ...(typeof left === 'number' ? [`${formatAge(left * 1000)} left`] : []),
  ];
  return texts.map((text) => `, ${text}`).join('');
}

/** Formats ` in 11 s`; returns an empty text once the attempt has begun. */
function untilRetry({ 'retry-at': at }: Shown): string {
  const pause = typeof at === 'string' ? Date.parse(at) - Date.now() : 0;
  return pause > 0 ? ` in ${formatAge(pause)}` : '';
}
