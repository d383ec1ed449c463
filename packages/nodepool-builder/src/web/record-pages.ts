import type { FastifyInstance } from 'fastify';
import type { Proof } from '../attestation/origin/origin-record.ts';
import type { BuildRecord, UploadRecord } from '../site/records.ts';
import type { WebContext } from './context.ts';
import { type Html, html } from './html.ts';
import { HttpError } from './http-error.ts';
import { sendPage } from './layout.ts';
import { age, badge, buildPath, progress } from './markup.ts';
import { buildOrigin, proofText, uploadOrigin } from './origin-parts.ts';
import { readBuildOrigin, readUploadOrigin } from './origins.ts';
import { imageDetails, recordActions, recordItem } from './overview.ts';
import { siteRecords } from './site-records.ts';
import type { Site } from './site-view.ts';

/** The page of a disk image, with its builds and uploads. */
export function imagePage(server: FastifyInstance, context: WebContext): void {
  server.get<{ Params: { name: string } }>('/images/:name', async (request, reply) => {
    const { name } = request.params;
    const { images, builds, uploads } = siteRecords(await context.view.current());
    const image = images.find((one) => one.diskimage === name);
    if (image === undefined) throw new HttpError(404, `disk image ${name} does not exist`);
    const isOwn = ({ diskimage }: { readonly diskimage: string | null }): boolean => diskimage === name;
    const own = { builds: builds.filter(isOwn), uploads: uploads.filter(isOwn) };
    const content = imageDetails(image, own, context.access.userOf(request) !== undefined);
    return await sendPage(context, request, reply, { title: name, content });
  });
}

/** The pages of builds and uploads, with their logs. */
export function recordPages(server: FastifyInstance, context: WebContext): void {
  server.get<{ Params: { id: string } }>('/builds/:id', async (request, reply) => {
    const { id } = request.params;
    const site = await context.view.current();
    const { builds, uploads } = siteRecords(site);
    const build = builds.find((one) => one['image-id'] === id);
    if (build === undefined) throw new HttpError(404, `build ${id} does not exist`);
    const canAct = context.access.userOf(request) !== undefined;
    const own = uploads.filter((one) => one['image-id'] === id);
    const origin = await readBuildOrigin(context.view, id);
    const proofs = new Map(origin.uploads.map((one) => [one['upload-id'], one.proof]));
    const item = (one: UploadRecord): Html => {
      const proof = proofs.get(one['upload-id']);
      const shown = proof !== undefined && isShown(proof, site);
      return recordItem(one, canAct, shown && html`<span class="detail">${proofText(proof)}</span>`);
    };
    const content = html`<div id="facts">${facts(build, canAct)}
<h2>Uploads</h2>
<ul class="records card">${
      own.length > 0 ? own.map(item) : html`<li class="quiet">None.</li>`
    }</ul>${buildOrigin(origin, isShown(origin.proof, site))}</div>${log('builds', id)}`;
    return await sendPage(context, request, reply, { title: id, content, script: 'log.js' });
  });

  server.get<{ Params: { id: string } }>('/uploads/:id', async (request, reply) => {
    const { id } = request.params;
    const site = await context.view.current();
    const { uploads } = siteRecords(site);
    const upload = uploads.find((one) => one['upload-id'] === id);
    if (upload === undefined) throw new HttpError(404, `upload ${id} does not exist`);
    const canAct = context.access.userOf(request) !== undefined;
    const origin = await readUploadOrigin(context.view, id);
    const content = html`<div id="facts">${facts(upload, canAct)}
${origin && isShown(origin.proof, site) && uploadOrigin(origin.proof)}</div>${log('uploads', id)}`;
    return await sendPage(context, request, reply, { title: `Upload ${id}`, content, script: 'log.js' });
  });
}

/** Returns whether a proof is worth showing. Without attestations, nothing is proven. */
function isShown({ state }: Proof, { configuration }: Site): boolean {
  const key = 'require-attestation';
  const isRequired = [configuration, ...configuration.providers.map(({ entry }) => entry)].some(
    (one) => one[key],
  );
  return state !== 'unproven' || configuration.attestation !== undefined || isRequired;
}

/** Renders the record of a build or an upload. */
function facts(record: BuildRecord | UploadRecord, canAct: boolean): Html {
  const { diskimage, requested, ended, reason, error, host, 'image-id': imageId } = record;
  const by = record['cancelled-by'];
  const isWithdrawn = 'withdrawn' in record && record.withdrawn;
  return html`<dl>
<dt>State</dt><dd>${badge(record.state, isWithdrawn ? ', rolled back' : '')} ${progress(record, 'Progress')}</dd>
<dt>Disk image</dt><dd>${
    diskimage === null ? 'unknown' : html`<a href="/images/${encodeURIComponent(diskimage)}">${diskimage}</a>`
  }</dd>
${
  'provider' in record &&
  html`<dt>Build</dt><dd><a href="${buildPath(imageId)}">${imageId}</a></dd>
<dt>Provider</dt><dd>${record.provider}, as ${record['image-name']}</dd>
${record['external-id'] !== null && html`<dt>Id there</dt><dd>${record['external-id']}</dd>`}`
}
${requested !== null && html`<dt>Requested</dt><dd>${age(requested)} ago: ${reason}</dd>`}
${ended !== null && html`<dt>Ended</dt><dd>${age(ended)} ago</dd>`}
${
  by === null
    ? error !== null &&
      html`<dt>${record.state === 'failed' ? 'Failure' : 'Cause'}</dt><dd class="detail">${error}</dd>`
    : html`<dt>Cancelled by</dt><dd>${by}</dd>`
}
${host !== null && html`<dt>Builder</dt><dd>${host}</dd>`}</dl>
${canAct && html`<p>${recordActions(record)}</p>`}`;
}

/** Renders the placeholder of a log, which a script fills. Without a script, it is a link. */
function log(list: 'builds' | 'uploads', id: string): Html {
  const path = `/${list}/${encodeURIComponent(id)}/log`;
  return html`<h2 id="log-title">Log</h2>
<p><a href="/api/v1${path}">The whole log as text</a></p>
<div class="tools" id="tools" hidden><label>Search <input type="search" id="search" autocomplete="off"></label>
<button type="button" id="previous">Previous</button> <button type="button" id="next">Next</button>
<span id="found" role="status"></span>
<label><input type="checkbox" id="follow" checked> Follow the end</label></div>
<p id="cut" class="quiet" hidden>This page shows only the end of the log.</p>
<div class="log" id="log" role="region" aria-labelledby="log-title" tabindex="0"
 data-events="${path}/events" data-list="${list}" data-id="${id}"></div>`;
}
