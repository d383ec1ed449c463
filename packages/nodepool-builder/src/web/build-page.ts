import type { FastifyInstance } from 'fastify';
import type { WebContext } from './context.ts';
import { html } from './html.ts';
import { HttpError } from './http-error.ts';
import { sendPage } from './layout.ts';
import { age, badge, progress } from './markup.ts';
import { recordActions, recordItem } from './overview.ts';
import { siteRecords } from './site-records.ts';

/** The page of a build. */
export function buildPage(server: FastifyInstance, context: WebContext): void {
  server.get<{ Params: { id: string } }>('/builds/:id', async (request, reply) => {
    const { id } = request.params;
    const { builds, uploads } = siteRecords(await context.view.current());
    const build = builds.find((one) => one['image-id'] === id);
    if (build === undefined) throw new HttpError(404, `there is no build ${id}`);
    const canAct = context.access.userOf(request) !== undefined;
    const own = uploads.filter((one) => one['image-id'] === id);
    const content = html`<dl>
<dt>State</dt><dd>${badge(build.state, build.withdrawn ? ', rolled back' : '')}
${progress(build.percent, 'Progress')}</dd>
<dt>Disk image</dt><dd>${build.diskimage ?? 'unknown'}</dd>
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
    }</ul>`;
    return await sendPage(context, request, reply, { title: id, content });
  });
}
