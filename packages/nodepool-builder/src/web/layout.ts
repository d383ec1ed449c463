import type { FastifyReply, FastifyRequest } from 'fastify';
import { packageVersion } from '../terms/version.ts';
import type { User } from './access.ts';
import { assetPath } from './assets.ts';
import type { WebContext } from './context.ts';
import { type Html, html, type Value } from './html.ts';

/** Cookie with a message for the next page. */
const NOTICE_COOKIE = 'nodepool-builder-notice';

export interface Page {
  readonly title: string;
  readonly content: Value;
  /** Script of the page. */
  readonly script?: 'page.js' | 'log.js';
  /** Version of the content, from which the script follows changes. */
  readonly version?: string;
}

/** Sends a page. */
export async function sendPage(
  { access }: WebContext,
  request: FastifyRequest,
  reply: FastifyReply,
  { title, content, script, version }: Page,
): Promise<FastifyReply> {
  const notice = request.cookies[NOTICE_COOKIE];
  if (notice !== undefined) reply.clearCookie(NOTICE_COOKIE, { path: '/' });
  const user = access.userOf(request);
  const page = html`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>${title} · nodepool-builder</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="${assetPath('icon.svg')}" type="image/svg+xml">
<link rel="stylesheet" href="${assetPath('page.css')}">
${script && html`<script type="module" src="${assetPath(script)}"></script>`}</head>
<body${version && html` data-version="${version}"`}>
<a class="skip" href="#main">Skip to the content</a>
<header><a class="site" href="/">nodepool-builder</a>
<span id="live" class="quiet" role="status"></span><span class="who">${who(user, access.hasLogin)}</span></header>
<main id="main" tabindex="-1"><h1>${title}</h1>
${notice && html`<p class="card notice" role="status">${notice}</p>`}
${content}</main>
<footer><p>nodepool-builder ${packageVersion()}, <a href="/api/v1/openapi.json">API</a></p></footer></body></html>`;
  return await reply.type('text/html; charset=utf-8').send(page.text);
}

/** Redirects the browser to another page, which shows a message. */
export async function sendNotice(reply: FastifyReply, path: string, notice: string): Promise<FastifyReply> {
  const options = { path: '/', httpOnly: true, sameSite: 'strict', maxAge: 60 } as const;
  return await reply.setCookie(NOTICE_COOKIE, notice, options).redirect(path, 303);
}

function who(user: User | undefined, hasLogin: boolean): Html | undefined {
  if (user !== undefined) {
    return html`${user.name}${
      hasLogin &&
      html` <form method="post" action="/logout"><input type="hidden" name="token" value="${user.formToken}">
<button>Log out</button></form>`
    }`;
  }
  return hasLogin ? html`<a href="/login">Log in</a>` : undefined;
}
