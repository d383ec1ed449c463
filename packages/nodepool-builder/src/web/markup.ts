import { progressText } from '../site/progress-text.ts';
import type { BuildRecord, UploadRecord } from '../site/records.ts';
import { formatAge } from '../terms/units.ts';
import { type Html, html } from './html.ts';

/** The time since, or until, a time of a record. The page's script formats it the same way. */
export function age(iso: string | null): Html | undefined {
  if (iso === null) return undefined;
  const text = formatAge(Math.abs(Date.now() - Date.parse(iso)));
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

/** A bar that browsers show in green, from 85 % on in yellow, and from 95 % on in red. */
export function diskMeter(size: number, free: number, what: string): Html {
  const [low, high] = [Math.ceil(size * 0.85), Math.ceil(size * 0.95)];
  return html`<meter max="${size}" optimum="0" low="${low}" high="${high}" value="${size - free}" aria-label="${what}"></meter>`;
}

/** Path of a build's page. */
export function buildPath(imageId: string): string {
  return `/builds/${encodeURIComponent(imageId)}`;
}

/** A link to the page that asks for confirmation of an action. */
export function actionLink(action: string, subject: string, text: string, about: string): Html {
  const path = `/actions/${action}?subject=${encodeURIComponent(subject)}`;
  return html`<a class="button" href="${path}" aria-label="${text} ${about}">${text}</a>`;
}
