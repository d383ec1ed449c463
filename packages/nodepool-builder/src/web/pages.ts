import type { SettingsOf } from '@nodepool-builder/image-builder';
import { rollbackChoices } from '@nodepool-builder/image-manager';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { LOGIN_SECONDS, SESSION_COOKIE } from './access.ts';
import { ACTIONS, type ActionName, act, requireUser } from './actions.ts';
import type { WebContext } from './context.ts';
import { ALIVE, EventStream } from './event-stream.ts';
import { Feed } from './feed.ts';
import { type Html, html } from './html.ts';
import { HttpError, statusOf } from './http-error.ts';
import { sendNotice, sendPage } from './layout.ts';
import { buildPath } from './markup.ts';
import { overviewParts, type Part } from './overview.ts';
import { imagePage, recordPages } from './record-pages.ts';

/** Fields of a form: the token of a login, or the form's own token. */
const FORM = { type: ['object', 'null'], properties: { token: { type: 'string' } } } as const;

type Form = SettingsOf<typeof FORM>;

/** Parameters of the page of an action. */
interface ActionRoute {
  readonly Params: { readonly action: string };
  readonly Querystring: { readonly subject?: string };
  readonly Body: Form;
}

const ACTION_QUERY = { type: 'object', properties: { subject: { type: 'string' } } } as const;
const EVENTS_QUERY = { type: 'object', properties: { since: { type: 'string' } } } as const;

/** The pages for a browser. They work without JavaScript. */
export function pages(server: FastifyInstance, context: WebContext): void {
  server.addContentTypeParser(
    'application/x-www-form-urlencoded',
    { parseAs: 'string' },
    async (_request: FastifyRequest, text: string | Buffer) =>
      Object.fromEntries(new URLSearchParams(text.toString())),
  );
  overview(server, context);
  imagePage(server, context);
  recordPages(server, context);
  login(server, context);
  actionPages(server, context);
}

function isImage({ name }: { readonly name: string }): boolean {
  return name.startsWith('image ');
}

function overview(server: FastifyInstance, context: WebContext): void {
  const { view, access } = context;
  const readOnly = new Feed<Part>(view, (site) => overviewParts(site, false));
  const withActions = new Feed<Part>(view, (site) => overviewParts(site, true));
  const feedFor = (request: FastifyRequest): Feed<Part> =>
    access.userOf(request) === undefined ? readOnly : withActions;

  server.get('/', async (request, reply) => {
    const { version, items } = feedFor(request).update(await view.current());
    const parts = [...items.entries()].map(([name, { value }]) => ({ name, text: value() }));
    const first = parts.findIndex(isImage);
    const images = parts.filter(isImage);
    const content = html`${parts.slice(0, 4).map(({ text }) => text)}
<section aria-labelledby="images"><h2 id="images">Disk images</h2>
<p class="tools" hidden><label>Filter <input type="search" id="filter" autocomplete="off"></label>
<span id="shown" role="status"></span></p>
${images.length > 0 ? images.map(({ text }) => text) : html`<p class="quiet">None is configured.</p>`}</section>
${parts.slice(Math.max(first, 4) + images.length).map(({ text }) => text)}`;
    return await sendPage(context, request, reply, { title: 'Images', content, script: 'page.js', version });
  });

  server.get<{ Querystring: { since?: string } }>(
    '/events',
    { schema: { querystring: EVENTS_QUERY } },
    async (request, reply) => {
      const feed = feedFor(request);
      const last = request.headers['last-event-id'] ?? request.query.since;
      feed.update(await view.current());
      const stream = new EventStream(reply, ALIVE);
      feed.follow(String(last ?? ''), stream.closed, ({ changed, isNew, version }) => {
        if (isNew) {
          stream.send('reload', {}, version);
          stream.end();
          return;
        }
        const parts = Object.fromEntries([...changed].map(([name, part]) => [name, part().text]));
        stream.send('parts', parts, version);
      });
    },
  );
}

function loginForm(error?: string): Html {
  return html`${error && html`<p class="card problem" role="alert">${error}</p>`}
<form method="post" action="/login"><p><label>Token<br>
<input type="password" name="token" required autocomplete="current-password"></label></p>
<p><button class="main">Log in</button> <a href="/">Back</a></p></form>
<p class="quiet">The administrator of this host has the token, in the file of --web-token-file.</p>`;
}

function login(server: FastifyInstance, context: WebContext): void {
  const { access, logger } = context;
  server.get('/login', async (request, reply) => {
    if (!access.hasLogin) throw new HttpError(404, 'login is not enabled');
    return await sendPage(context, request, reply, { title: 'Log in', content: loginForm() });
  });

  server.post<{ Body: Form }>('/login', { schema: { body: FORM } }, async (request, reply) => {
    if (!access.isOwnPage(request)) throw new HttpError(403, 'the request did not come from this page');
    if (!access.isToken(request.body?.token ?? '')) {
      logger.warn(`${request.ip}: login with a wrong token`);
      const content = loginForm('Wrong token.');
      return await sendPage(context, request, reply.code(403), { title: 'Log in', content });
    }
    const options = { path: '/', httpOnly: true, sameSite: 'strict', secure: access.isSecure } as const;
    return await reply
      .setCookie(SESSION_COOKIE, access.startSession(), { ...options, maxAge: LOGIN_SECONDS })
      .redirect('/', 303);
  });

  server.post<{ Body: Form }>('/logout', { schema: { body: FORM } }, async (request, reply) => {
    requireUser(context, request, request.body?.token);
    access.endSession(request);
    return await reply.clearCookie(SESSION_COOKIE, { path: '/' }).redirect('/', 303);
  });
}

/** Texts of the pages that ask for confirmation. */
const QUESTIONS: Readonly<Record<ActionName, readonly [title: string, button: string, explanation: string]>> =
  {
    rebuild: ['Rebuild', 'Rebuild', 'The image is built now, and uploaded wherever it is used.'],
    pause: ['Pause', 'Pause', 'The image is neither built nor uploaded until somebody unpauses it.'],
    unpause: [
      'Unpause',
      'Unpause',
      'The image is built and uploaded again, even if the configuration pauses it.',
    ],
    rollback: [
      'Roll back',
      'Roll back',
      'It is deleted at the builders and in each provider that has an older image.',
    ],
    'delete-build': ['Delete image', 'Delete', 'The image is deleted in all providers and on disk.'],
    'delete-upload': [
      'Delete upload',
      'Delete',
      'The image is deleted from this provider. If it is still in use there, it is uploaded again.',
    ],
    'cancel-build': ['Cancel build', 'Cancel the build', 'The build stops, and leaves nothing.'],
    'cancel-upload': ['Cancel upload', 'Cancel the upload', 'The upload stops, and leaves nothing.'],
  };

/**
 * Names the image that a rollback withdraws, and the image that it restores.
 *
 * @throws HttpError 409
 */
async function rollbackText({ view }: WebContext, diskimage: string): Promise<string> {
  const { state } = await view.current();
  const [newest, previous] = rollbackChoices(state)(diskimage);
  if (newest === undefined || previous === undefined) {
    throw new HttpError(409, `disk image ${diskimage} has no older image to roll back to`);
  }
  return `${previous.id} is in use again. ${newest.id} is withdrawn.`;
}

/** @throws HttpError 404 */
function readAction({ params, query }: FastifyRequest<ActionRoute>): { action: ActionName; subject: string } {
  const { action } = params;
  if (!Object.hasOwn(ACTIONS, action) || query.subject === undefined) {
    throw new HttpError(404, 'this action does not exist');
  }
  return { action: action as ActionName, subject: query.subject };
}

function actionPages(server: FastifyInstance, context: WebContext): void {
  const schema = { querystring: ACTION_QUERY };
  server.get<ActionRoute>('/actions/:action', { schema }, async (request, reply) => {
    const { action, subject } = readAction(request);
    const user = context.access.userOf(request);
    if (user === undefined) throw new HttpError(401, 'read-only access; log in first');
    const [title, button, explanation] = QUESTIONS[action];
    const content = html`<p>${action === 'rollback' && (await rollbackText(context, subject))} ${explanation}</p>
<form method="post"><input type="hidden" name="token" value="${user.formToken}">
<p><button class="main">${button}</button> <a href="/">Back</a></p></form>`;
    return await sendPage(context, request, reply, { title: `${title} ${subject}`, content });
  });

  server.post<ActionRoute>(
    '/actions/:action',
    { schema: { ...schema, body: FORM } },
    async (request, reply) => {
      const { action, subject } = readAction(request);
      const back = action.endsWith('-build') ? buildPath(subject) : '/';
      try {
        const done = await act(context, request, action, subject, request.body?.token);
        return await sendNotice(reply, back, `${QUESTIONS[action][0]} ${subject}: ${done}.`);
      } catch (error) {
        const status = statusOf(error);
        if (status !== 404 && status !== 409) throw error;
        return await sendNotice(
          reply,
          back,
          `${QUESTIONS[action][0]} ${subject}: ${(error as Error).message}.`,
        );
      }
    },
  );
}
