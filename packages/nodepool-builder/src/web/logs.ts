import { setTimeout as delay } from 'node:timers/promises';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { messageOf } from '../commands/output.ts';
import { builderLog, type LogName } from '../control/builder-log.ts';
import type { WebContext } from './context.ts';
import { EventStream } from './event-stream.ts';
import { HttpError, statusOf } from './http-error.ts';
import { type LogChunk, LogSources } from './log-source.ts';
import { API } from './openapi.ts';
import { siteRecords } from './site-records.ts';
import type { SiteView } from './site-view.ts';
import { terminalHtml } from './terminal-text.ts';

/** Bytes of a line without an end that are shown as a line of their own. */
const LONGEST_LINE = 65_536;

/** Pause before a builder that has failed is asked again, in milliseconds. */
const PAUSE = 2000;

interface LogRoute {
  readonly Params: { readonly id: string };
  readonly Querystring: { readonly offset?: number };
}

const PARAMETERS = {
  params: { type: 'object', required: ['id'], properties: { id: { type: 'string' } } },
  querystring: {
    type: 'object',
    properties: {
      offset: { type: 'integer', minimum: 0, description: 'Byte at which it begins. Default: the first.' },
    },
  },
} as const;

const LINES = {
  type: 'object',
  required: ['text', 'offset'],
  additionalProperties: false,
  properties: {
    text: { type: 'string', description: 'Lines of the log, as the terminal would get them.' },
    offset: { type: 'integer', description: 'Offset of what follows: the id of the event.' },
  },
} as const;

/** The logs of builds and uploads: as text, and as server-sent events while they grow. */
export function logs(server: FastifyInstance, context: WebContext): void {
  const sources = new LogSources();
  for (const list of ['builds', 'uploads'] as const) {
    const what = list === 'builds' ? 'a build' : 'an upload';
    const name = (id: string): Promise<LogName> => logName(context, list, id);
    const text = { type: 'string', description: 'The log so far.' } as const;
    const plain = { summary: `Shows the log of ${what}`, produces: ['text/plain'], response: { 200: text } };
    server.get<LogRoute>(
      `${API}/${list}/:id/log`,
      { schema: { ...PARAMETERS, ...plain } },
      async (request, reply) => sendText(context, await name(request.params.id), request, reply),
    );
    const asEvents = {
      summary: `Follows the log of ${what}, as server-sent events`,
      description: 'Events `lines` with these data; at last, an event `end` with the `reason`.',
      produces: ['text/event-stream'],
      response: { 200: { ...LINES, description: 'The data of each event.' } },
    };
    const schema = { ...PARAMETERS, ...asEvents };
    server.get<LogRoute>(`${API}/${list}/:id/log/events`, { schema }, async (request, reply) => {
      await follow(context, sources, await name(request.params.id), request, reply, asText);
    });
    server.get<LogRoute>(`/${list}/:id/log/events`, { schema: PARAMETERS }, async (request, reply) => {
      await follow(context, sources, await name(request.params.id), request, reply, asHtml);
    });
  }
}

function asText(text: string, offset: number): unknown {
  return { text, offset };
}

function asHtml(text: string): unknown {
  return { html: terminalHtml(text) };
}

/** @throws HttpError 404 */
async function logName({ view }: WebContext, list: 'builds' | 'uploads', id: string): Promise<LogName> {
  if (list === 'builds') return { imageId: id };
  const upload = (await view.current()).state.uploads.get(id);
  if (upload === undefined) throw new HttpError(404, `there is no ${id} in uploads`);
  return { imageId: upload.imageId, uploadId: id };
}

/** Sends what there is of a log. */
async function sendText(
  { view }: WebContext,
  name: LogName,
  request: FastifyRequest<LogRoute>,
  reply: FastifyReply,
): Promise<FastifyReply> {
  const read = builderLog(view.servers, name, 0);
  const gone = new AbortController();
  reply.raw.once('close', () => gone.abort(new Error('the browser has disconnected')));
  const first = await read(request.query.offset ?? 0, gone.signal);
  async function* parts(): AsyncIterable<Buffer> {
    for (let chunk = first; chunk.data.length > 0; ) {
      yield chunk.data;
      if (chunk.isComplete) return;
      chunk = await read(chunk.offset + chunk.data.length, gone.signal);
    }
  }
  const { Readable } = await import('node:stream');
  return await reply.type('text/plain; charset=utf-8').send(Readable.from(parts()));
}

/** Sends the lines of a log until it ends, or the browser disconnects. A slow browser is sent no more than it takes. */
async function follow(
  { view, logger }: WebContext,
  sources: LogSources,
  name: LogName,
  request: FastifyRequest<LogRoute>,
  reply: FastifyReply,
  render: (text: string, offset: number) => unknown,
): Promise<void> {
  const last = Number(request.headers['last-event-id'] ?? request.query.offset ?? 0);
  const stream = new EventStream(reply);
  const key = JSON.stringify(name);
  await sources
    .use(key, builderLog(view.servers, name), async (source) => {
      const cutter = new LineCutter(Number.isSafeInteger(last) && last >= 0 ? last : 0);
      for (;;) {
        const chunk = await source.read(cutter.next, stream.closed);
        const text = cutter.add(chunk);
        if (text !== undefined) stream.send('lines', render(text, cutter.sent), String(cutter.sent));
        if (chunk.isComplete) break;
        await stream.drained();
      }
      stream.send('end', { reason: 'the log is complete' }, String(cutter.sent));
    })
    .catch(async (error: unknown) => {
      if (stream.closed.aborted) return;
      if (statusOf(error) === 404 && !(await isRunning(view, name))) {
        stream.send('end', { reason: 'no builder has this log' }, '0');
        return;
      }
      logger.debug(`the log of ${name.imageId}: ${messageOf(error)}`);
      // The browser connects again, and goes on where it was.
      await delay(PAUSE, undefined, { signal: stream.closed }).catch(() => {});
    })
    .finally(() => stream.end());
}

async function isRunning(view: SiteView, { imageId, uploadId }: LogName): Promise<boolean> {
  const { builds, uploads } = siteRecords(await view.current());
  const build = uploadId === undefined && builds.find((one) => one['image-id'] === imageId);
  const record = build || uploads.find((one) => one['upload-id'] === uploadId);
  return record?.state === 'building' || record?.state === 'uploading';
}

/** Cuts chunks of a log into whole lines. */
class LineCutter {
  /** Offset of the first byte that was not sent. */
  sent: number;
  #rest: Buffer = Buffer.alloc(0);

  constructor(offset: number) {
    this.sent = offset;
  }

  /** Offset of the next chunk. */
  get next(): number {
    return this.sent + this.#rest.length;
  }

  /** Returns the whole lines, without the end of the last one; undefined if there is none. */
  add({ data, isComplete }: LogChunk): string | undefined {
    const all = Buffer.concat([this.#rest, data]);
    const lines = all.lastIndexOf(10) + 1;
    const end = isComplete || (lines === 0 && all.length > LONGEST_LINE) ? all.length : lines;
    this.#rest = all.subarray(end);
    this.sent += end;
    if (end === 0) return undefined;
    return all.subarray(0, end).toString().replace(/\n$/, '');
  }
}
