import { progressText } from '../site/progress-text.ts';
import { type Html, html } from './html.ts';
import type { BuildRecord, UploadRecord } from './records.ts';

/** Formats a time span as `3 d 4 h`; the page's script does the same. */
export function ageOf(milliseconds: number): string {
  const seconds = Math.max(0, Math.floor(milliseconds / 1000));
  const units: readonly (readonly [number, string])[] = [
    [Math.floor(seconds / 86_400), 'd'],
    [Math.floor(seconds / 3600) % 24, 'h'],
    [Math.floor(seconds / 60) % 60, 'min'],
    [seconds % 60, 's'],
  ];
  const first = units.findIndex(([count]) => count > 0);
  if (first === -1) return '0 s';
  const shown = units.slice(first, first + 2).filter(([count]) => count > 0);
  return shown.map(([count, unit]) => `${count} ${unit}`).join(' ');
}

/** The time since, or until, a time of a record. */
export function age(iso: string | null): Html | undefined {
  if (iso === null) return undefined;
  const text = ageOf(Math.abs(Date.now() - Date.parse(iso)));
  return html`<time datetime="${iso}" title="${iso}" data-age>${text}</time>`;
}

/** @param more follows the state, such as `, paused` */
export function badge(state: string, more = ''): Html {
  return html`<span class="badge ${state}">${state}${more}</span>`;
}

export function progress(record: BuildRecord | UploadRecord, what: string): Html | undefined {
  const { percent, 'retry-at': at, retrying, ...reading } = record;
  const bar =
    percent !== null && html`<progress max="100" value="${percent}" aria-label="${what}"></progress>`;
  const text = progressText({ percent, ...reading });
  const isLater = at !== null && Date.parse(at) > Date.now();
  const retry =
    retrying !== null &&
    html`<span class="wait">retrying${isLater && html` in ${age(at)}`}: ${retrying}</span>`;
  return text === '' ? undefined : html`<span>${bar} ${text} ${retry}</span>`;
}

/** `1 image`, `3 images`. */
export function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

/** `12.3 GiB`. */
export function bytes(count: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
  const power = count < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log2(count) / 10));
  return `${(count / 1024 ** power).toFixed(power === 0 ? 0 : 1)} ${units[power]}`;
}

/** Path of a build's page. */
export function buildPath(imageId: string): string {
  return `/builds/${encodeURIComponent(imageId)}`;
}

/** A link to the page that asks whether to do something. */
export function actionLink(action: string, subject: string, text: string, about: string): Html {
  const path = `/actions/${action}?subject=${encodeURIComponent(subject)}`;
  return html`<a href="${path}" aria-label="${text} ${about}">${text}</a>`;
}
