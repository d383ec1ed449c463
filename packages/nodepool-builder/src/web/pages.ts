import type { FastifyInstance } from 'fastify';
import type { WebContext } from './context.ts';
import { html } from './html.ts';

/** The pages for a browser. */
export function pages(server: FastifyInstance, { view }: WebContext): void {
  server.get('/', async (_request, reply) => {
    const { configuration } = await view.current();
    const body = html`<!doctype html>
<html lang="en"><title>Images</title><h1>Images</h1>
<ul>${configuration.diskimages.map(({ name }) => html`<li>${name}</li>`)}</ul></html>`;
    return await reply.type('text/html; charset=utf-8').send(body.text);
  });
}
