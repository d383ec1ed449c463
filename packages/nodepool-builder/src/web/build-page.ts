import type { FastifyInstance } from 'fastify';
import type { WebContext } from './context.ts';
import { html } from './html.ts';
import { HttpError } from './http-error.ts';
import { sendPage } from './layout.ts';
import { age, badge, buildPath, progress } from './markup.ts';
import { imageDetails, recordActions, recordItem } from './overview.ts';
import { siteRecords } from './site-records.ts';

/** The page of a disk image, with its builds and uploads. */
export function imagePage(server: FastifyInstance, context: WebContext): void {
  server.get<{ Params: { name: string } }>('/images/:name', async (request, reply) => {
    const { name } = request.params;
    const { images, builds, uploads } = siteRecords(await context.view.current());
    const image = images.find((one) => one.name === name);
    if (image === undefined) throw new HttpError(404, `there is no disk image ${name}`);
    const isOwn = ({ diskimage }: { readonly diskimage: string | null }): boolean => diskimage === name;
    const own = { builds: builds.filter(isOwn), uploads: uploads.filter(isOwn) };
    const content = imageDetails(image, own, context.access.userOf(request) !== undefined);
    return await sendPage(context, request, reply, { title: name, content });
  });
}

/** The page of a build. */
export function buildPage(server: FastifyInstance, context: WebContext): void {
  server.get<{ Params: { id: string } }>('/builds/:id', async (request, reply) => {
    const { id } = request.params;
    const { builds, uploads } = siteRecords(await context.view.current());
    const build = builds.find((one) => one['image-id'] === id);
    if (build === undefined) throw new HttpError(404, `there is no build ${id}`);
    const canAct = context.access.userOf(request) !== undefined;
    const own = uploads.filter((one) => one['image-id'] === id);
    const facts = html`<div id="facts"><dl>
<dt>State</dt><dd>${badge(build.state, build.withdrawn ? ', rolled back' : '')}
${progress(build, 'Progress')}</dd>
<dt>Disk image</dt><dd>${
      build.diskimage === null
        ? 'unknown'
        : html`<a href="/images/${encodeURIComponent(build.diskimage)}">${build.diskimage}</a>`
    }</dd>
${build.requested !== null && html`<dt>Requested</dt><dd>${age(build.requested)} ago</dd>`}
${build.ended !== null && html`<dt>Ended</dt><dd>${age(build.ended)} ago</dd>`}
<dt>Why</dt><dd>${build.reason}</dd>
${build.error !== null && html`<dt>Failure</dt><dd class="why">${build.error}</dd>`}
${build['cancelled-by'] !== null && html`<dt>Cancelled by</dt><dd>${build['cancelled-by']}</dd>`}
${build.host !== null && html`<dt>Builder</dt><dd>${build.host}</dd>`}</dl>
${canAct && html`<p>${recordActions(build)}</p>`}
<h2>Uploads</h2>
<ul class="records card">${
      own.length > 0 ? own.map((one) => recordItem(one, canAct)) : html`<li class="quiet">None.</li>`
    }</ul></div>`;
    const path = `/api/v1/builds/${encodeURIComponent(id)}/log`;
    const log = html`<h2 id="log-title">Log</h2>
<p><a href="${path}">The whole log as text</a></p>
<div class="tools" id="tools" hidden><label>Search <input type="search" id="search" autocomplete="off"></label>
<button type="button" id="previous">Previous</button> <button type="button" id="next">Next</button>
<span id="found" role="status"></span>
<label><input type="checkbox" id="follow" checked> Follow the end</label></div>
<p id="cut" class="quiet" hidden>This page shows only the end of the log.</p>
<div class="log" id="log" role="region" aria-labelledby="log-title" tabindex="0"
 data-events="${buildPath(id)}/log/events" data-build="${id}"></div>`;
    return await sendPage(context, request, reply, { title: id, content: [facts, log], script: 'log.js' });
  });
}
