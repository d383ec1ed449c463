import { formatBytes } from '@nodepool-builder/image-builder/internal';
import type { BuildRecord, ImageRecord, PlanRecord, UploadRecord } from '../site/records.ts';
import { counted } from '../terms/units.ts';
import type { CloudImageRecord } from './cloud-image-watch.ts';
import type { Item } from './feed.ts';
import { type Html, html } from './html.ts';
import { actionLink, age, badge, buildPath, diskMeter, progress } from './markup.ts';
import { type SiteRecords, siteRecords } from './site-records.ts';
import type { Site } from './site-view.ts';

/** Maximum number of plan steps on the page. The API has all. */
const MAX_PLAN_LENGTH = 100;

/** Maximum number of unfolded entries in each list above the images. */
const MAX_UNFOLDED = 3;

/** Renders a part of the overview, when a browser requests it. */
export type Part = () => Html;

/** @param data the data that the part shows, whose changes change the part */
function part(name: string, data: unknown, content: () => Html): readonly [string, Item<Part>] {
  return [name, { key: JSON.stringify(data), value: content }];
}

/** Yields the parts of the overview by name. Each one changes by itself. */
export function* overviewParts(
  site: Site,
  canAct: boolean,
): Iterable<readonly [name: string, part: Item<Part>]> {
  const records = siteRecords(site);
  const { images, builds, uploads, plan, builders, servers, problems } = records;
  const counts = [images.map(({ state }) => state), builders.length];
  yield part('summary', counts, () => summary(records));
  yield part('problems', problems, () => problemList(problems));
  const failures = failuresOf(records);
  yield part('failures', failures, () => failureList(failures));
  const running = [...builds, ...uploads].filter(
    ({ state }) => state === 'queued' || state === 'building' || state === 'uploading',
  );
  yield part('running', running, () => runningList(running, canAct));
  const buildsOf = Map.groupBy(builds, ({ diskimage }) => diskimage);
  const uploadsOf = Map.groupBy(uploads, ({ diskimage }) => diskimage);
  for (const image of images) {
    const { diskimage } = image;
    const own = { builds: buildsOf.get(diskimage) ?? [], uploads: uploadsOf.get(diskimage) ?? [] };
    yield part(`image ${diskimage}`, [image, own], () => imageCard(image));
  }
  const names = new Set<string | null>(images.map(({ diskimage }) => diskimage));
  const others = builds.filter(({ diskimage }) => !names.has(diskimage));
  yield part('others', others, () => otherBuilds(others, canAct));
  yield part('plan', plan, () => planList(plan));
  const cloudImages = records['cloud-images'];
  yield part('cloud-images', cloudImages, () => cloudImageList(cloudImages));
  const rooms = builders.map((builder) => [builder, formatBytes(builder['disk-free'])]);
  const shown = JSON.stringify(rooms, (key, value: unknown) => (key === 'disk-free' ? undefined : value));
  yield part('builders', [shown, servers], () => builderList(records));
}

/**
 * Returns the failed builds and uploads that determine the state of their disk image, at the builders or in a provider.
 */
function failuresOf({ images, builds, uploads }: SiteRecords): readonly (BuildRecord | UploadRecord)[] {
  const failedBuilds = Map.groupBy(builds.filter(isFailed), ({ diskimage }) => diskimage);
  const failedUploads = Map.groupBy(uploads.filter(isFailed), placeOf);
  return images.flatMap((image) => [
    ...(isFailed(image) ? (failedBuilds.get(image.diskimage) ?? []).slice(0, 1) : []),
    ...image.providers.flatMap((place) =>
      isFailed(place)
        ? (failedUploads.get(placeOf({ ...place, diskimage: image.diskimage })) ?? []).slice(0, 1)
        : [],
    ),
  ]);
}

function isFailed({ state }: { readonly state: string }): boolean {
  return state === 'failed';
}

function placeOf(place: Pick<UploadRecord, 'diskimage' | 'provider' | 'image-name'>): string {
  return JSON.stringify([place.diskimage, place.provider, place['image-name']]);
}

function summary({ images, builders }: SiteRecords): Html {
  const count = (state: string): number => images.filter((image) => image.state === state).length;
  const states = ['ready', 'queued', 'building', 'failed', 'cancelled', 'missing'];
  const shown = states.filter((state) => count(state) > 0);
  return html`<p data-part="summary">${counted(images.length, 'disk image')}
${shown.map((state) => html`<span class="badge ${state}">${count(state)} ${state}</span> `)}
${counted(builders.length, 'builder')}</p>`;
}

function problemList(problems: readonly string[]): Html {
  const items = problems.map((problem) => html`<p class="card problem" role="alert">${problem}</p>`);
  return html`<div data-part="problems">${items}</div>`;
}

function failureList(failures: readonly (BuildRecord | UploadRecord)[]): Html {
  const items = failures.map((record) => recordItem(record, false));
  return section('failures', 'Failures', items.length > 0 && briefList(items, 'failure'));
}

/** Renders a part with a heading. Without content, it is hidden. */
function section(name: string, heading: string, content: Html | false): Html {
  if (content === false) return html`<section data-part="${name}" hidden></section>`;
  return html`<section data-part="${name}" aria-labelledby="${name}"><h2 id="${name}">${heading}</h2>
${content}</section>`;
}

/** @param none text in place of an empty list */
function cardList(items: readonly Html[], none: string): Html {
  return items.length > 0 ? html`<ul class="records card">${items}</ul>` : html`<p class="quiet">${none}</p>`;
}

/** Renders the first items of a list and folds the others, so that the images remain visible. */
function briefList(items: readonly Html[], noun: string): Html {
  const more = items.slice(MAX_UNFOLDED);
  return html`<div class="card brief"><ul class="records">${items.slice(0, MAX_UNFOLDED)}</ul>
${
  more.length > 0 &&
  html`<details><summary>${counted(more.length, `more ${noun}`)}</summary><ul class="records">${more}</ul></details>`
}</div>`;
}

function runningList(running: readonly (BuildRecord | UploadRecord)[], canAct: boolean): Html {
  const items = running.map((record) => recordItem(record, canAct));
  const list = items.length > 0 ? briefList(items, 'job') : html`<p class="quiet">Nothing.</p>`;
  return section('running', 'Running and waiting', list);
}

/** Builds and uploads of a disk image. */
export type Own = Pick<SiteRecords, 'builds' | 'uploads'>;

/** Renders a disk image, folded. The script loads the image's page into it when it is unfolded. */
function imageCard({
  diskimage: name,
  state,
  newest,
  providers,
  next,
  paused,
  'paused-by': by,
  ...image
}: ImageRecord): Html {
  const [first] = next;
  const text = [name, state, ...providers.flatMap((place) => [place.provider, place.state])].join(' ');
  const path = `/images/${encodeURIComponent(name)}`;
  return html`<details class="image" data-part="image ${name}" data-text="${text.toLowerCase()}">
<summary><h3 class="id">${name}</h3>${badge(state, paused ? `, paused${by === null ? '' : ` by ${by}`}` : '')}
<span>${newest === null ? 'no image' : age(image['newest-requested'])}</span>
<span class="providers">${providers.map((place) => html`${providerBadge(place, newest)} `)}</span>
<span class="next quiet">${first && nextOf(first)}</span></summary>
<div data-source="${path}"><p><a href="${path}">Builds and uploads of ${name}</a></p></div></details>`;
}

/**
 * Shows a provider with the state of a disk image in it.
 *
 * @param newest id of the newest image at the builders
 */
function providerBadge(place: ImageRecord['providers'][number], newest: string | null): Html {
  const isOlder = place.state === 'ready' && newest !== null && place.newest !== newest;
  const state = isOlder ? 'older' : place.state;
  return html`<span class="badge ${state}">${place.provider}${state !== 'ready' && ` ${state}`}</span>`;
}

/** Renders the next steps, builds and uploads of a disk image. */
export function imageDetails(image: ImageRecord, { builds, uploads }: Own, canAct: boolean): Html {
  const { diskimage: name, next, paused, 'paused-by': by } = image;
  const { 'paused-since': since, 'rollback-to': rollbackTo } = image;
  return html`<div class="details">${by !== null && html`<p>Paused by ${by} ${age(since)} ago.</p>`}${
    canAct &&
    html`<p>${
      paused ? actionLink('unpause', name, 'Unpause', name) : actionLink('rebuild', name, 'Rebuild', name)
    } ${paused && by !== null ? '' : actionLink('pause', name, 'Pause', name)}
${rollbackTo !== null && actionLink('rollback', name, 'Roll back', name)}</p>`
  }
<h4>Next</h4>
<ul class="records">${
    next.length > 0 ? next.map(planItem) : html`<li class="quiet">Nothing is planned.</li>`
  }</ul>
<h4>Builds</h4>
<ul class="records">${recordItems(builds, canAct)}</ul>
<h4>Uploads</h4>
<ul class="records">${recordItems(uploads, canAct)}</ul></div>`;
}

function recordItems(records: readonly (BuildRecord | UploadRecord)[], canAct: boolean): Html | Html[] {
  return records.length === 0
    ? html`<li class="quiet">None.</li>`
    : records.map((one) => recordItem(one, canAct));
}

/**
 * Renders a build or an upload in a list.
 *
 * @param more content for the end
 */
export function recordItem(record: BuildRecord | UploadRecord, canAct: boolean, more?: Html | false): Html {
  const { state, requested, error, host } = record;
  const imageId = record['image-id'];
  const where =
    'provider' in record &&
    html` <a href="/uploads/${record['upload-id']}">to ${record.provider} as ${record['image-name']}</a>`;
  const by = record['cancelled-by'];
  const withdrawn = 'withdrawn' in record && record.withdrawn ? ', rolled back' : '';
  return html`<li>${badge(state, withdrawn)}
<span class="id"><a href="${buildPath(imageId)}">${imageId}</a>${where}</span>
${requested !== null && html`<span class="quiet">${age(requested)} ago</span>`}
${progress(record, `Progress of ${imageId}`)} ${host !== null && html`<span class="quiet">on ${host}</span>`}
${canAct && html`<span class="actions">${recordActions(record)}</span>`}
<span class="detail quiet">${by === null ? error : `cancelled by ${by}`}</span>${more}</li>`;
}

/** Links to the actions for a build or an upload. */
export function recordActions(record: BuildRecord | UploadRecord): Html | undefined {
  const [kind, id] = 'upload-id' in record ? ['upload', record['upload-id']] : ['build', record['image-id']];
  if (record.state === 'queued' || record.state === 'building' || record.state === 'uploading') {
    return actionLink(`cancel-${kind}`, id, 'Cancel', `${kind} ${id}`);
  }
  return record.state === 'ready' && record.requested !== null
    ? actionLink(`delete-${kind}`, id, 'Delete', `${kind} ${id}`)
    : undefined;
}

function otherBuilds(builds: readonly BuildRecord[], canAct: boolean): Html {
  const list = html`<ul class="records card">${recordItems(builds, canAct)}</ul>`;
  return section('others', 'Images of disk images that are not configured here', builds.length > 0 && list);
}

/** Formats a step, such as `build in 3 h`. */
function nextOf({ what, when }: PlanRecord): Html {
  if (when === 'now') return html`${what} now`;
  if (what === 'wait') return when === null ? html`waits` : html`waits ${age(when)}`;
  return when === null ? html`${what}` : html`${what} in ${age(when)}`;
}

function planItem(step: PlanRecord): Html {
  const isWait = step.what === 'wait';
  return html`<li><span class="badge${isWait && ' wait'}">${nextOf(step)}</span>
<span class="id">${step.subject}</span><span class="detail quiet">${step.reason}</span></li>`;
}

function planList(plan: readonly PlanRecord[]): Html {
  const shown = plan.slice(0, MAX_PLAN_LENGTH);
  const more = plan.length - shown.length;
  return section(
    'plan',
    'What comes next',
    html`${cardList(shown.map(planItem), 'Nothing is planned.')}
${more > 0 && html`<p><a href="/api/v1/plan">${counted(more, 'more step')} in the API</a></p>`}`,
  );
}

function cloudImageList(images: readonly CloudImageRecord[]): Html {
  const items = images.map((image) => {
    const { provider, name, error, since, built, 'external-id': id, 'external-name': externalName } = image;
    const state = error === null && id !== null ? 'ready' : error === null ? 'waiting' : 'failed';
    return html`<li><span class="badge ${state}">${name}</span><span class="quiet">in ${provider}</span>
<span class="id">${id ?? 'none'}${externalName !== null && externalName !== id && html` (${externalName})`}</span>
${since !== null && html`<span>for ${age(since)}</span>`}
${built !== null && html`<span class="quiet">built ${age(built)} ago</span>`}
<span class="detail quiet">${error}</span></li>`;
  });
  return section('cloud-images', 'Chosen by filters', items.length > 0 && cardList(items, ''));
}

function builderList({ builders, servers }: SiteRecords): Html {
  const items = builders.map((builder) => {
    const { host, pid, version, started, images, jobs, 'disk-free': free, 'disk-size': size } = builder;
    return html`<li><span class="badge">${host}</span><span class="quiet">process ${pid}, release ${version}, up
${age(started)}</span><span>${counted(images, 'image')}</span><span>${counted(jobs.length, 'running job')}</span>
<span>${diskMeter(size, free, `Disk of ${host}`)}
${formatBytes(free)} of ${formatBytes(size)} free in ${builder['images-dir']}</span></li>`;
  });
  const jobs = servers.map(({ address, answers, running, queued }) => {
    const state = answers ? `${running} running, ${queued} waiting` : 'does not respond';
    return html`<li><span class="badge ${answers ? 'ready' : 'failed'}">${address}</span><span>${state}</span></li>`;
  });
  return section(
    'builders',
    'Builders',
    html`${cardList(items, 'No builder responds.')}<h2>Job servers</h2><ul class="records card">${jobs}</ul>`,
  );
}
