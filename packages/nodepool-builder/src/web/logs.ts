import { Readable } from 'node:stream';
import { setTimeout as delay } from 'node:timers/promises';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { builderLog, type LogName } from '../site/builder-log.ts';
import { type LogPart, LogSources, SHORTENED_NOTE } from '../site/log-source.ts';
import { errorLine } from '../terms/command-error.ts';
import { printable } from '../terms/printable.ts';
import { recordSchema } from '../terms/record-schema.ts';
import type { WebContext } from './context.ts';
import { ALIVE, EventStream, formatEvent } from './event-stream.ts';
import { HttpError, statusOf } from './http-error.ts';
import { API } from './openapi.ts';
import { siteRecords } from './site-records.ts';
import type { SiteView } from './site-view.ts';
import { terminalHtml } from './terminal-text.ts';

/** Pause before a failed builder is queried again, in milliseconds. */
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
      offset: { type: 'integer', minimum: 0, description: 'First byte. Default: the first byte of the log.' },
    },
  },
} as const;

const LINES = recordSchema({
  text: { type: 'string', description: 'Lines of the log, as a terminal would receive them.' },
  offset: { type: 'integer', description: 'Offset of the next byte, which is the id of the event.' },
});

/** The logs of builds and uploads, as text, and as server-sent events while they grow. */
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
      description: 'Events `lines` with these data, followed by an event `end` with the `reason`.',
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

/** Lines of a log, and the offset of their first byte. */
type Lines = Pick<LogPart, 'data' | 'offset'>;

/** Notice for a reader whose offset was reset because the log was truncated. */
function shortened(next: LogPart): Lines {
  const data = Buffer.from(`${SHORTENED_NOTE}\n`);
  return { data, offset: next.offset - data.length }; // a reader who reconnects gets the lines that follow the notice
}

/** Formats the event with the lines of a part as text. */
function asText(part: Lines): Buffer {
  return eventOf(part, { text: textOf(part), offset: endOf(part) });
}

/** Formats the event with the lines of a part as the page shows them. */
function asHtml(part: Lines): Buffer {
  return eventOf(part, { html: terminalHtml(textOf(part)) });
}

function eventOf(part: Lines, data: unknown): Buffer {
  return Buffer.from(formatEvent('lines', data, String(endOf(part))));
}

function textOf({ data }: Lines): string {
  return data.toString().replace(/\n$/, '');
}

function endOf({ offset, data }: Lines): number {
  return offset + data.length;
}

/** @throws HttpError 404 */
async function logName({ view }: WebContext, list: 'builds' | 'uploads', id: string): Promise<LogName> {
  if (list === 'builds') return { imageId: id };
  const upload = (await view.current()).state.uploads.get(id);
  if (upload === undefined) throw new HttpError(404, `${id} is not in uploads`);
  return { imageId: upload.imageId, uploadId: id };
}

/** Sends the log so far. */
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
  async function* parts(): AsyncIterable<string> {
    const decoder = new TextDecoder();
    for (let chunk = first; chunk.data.length > 0; ) {
      yield printable(decoder.decode(chunk.data, { stream: true }));
      if (chunk.isComplete) return;
      chunk = await read(chunk.offset + chunk.data.length, gone.signal);
    }
  }
  return await reply.type('text/plain; charset=utf-8').send(Readable.from(parts()));
}

/**
 * Sends the lines of a log until it ends, or the browser disconnects. A slow browser receives no more than it can read.
 */
async function follow(
  { view, logger }: WebContext,
  sources: LogSources,
  name: LogName,
  request: FastifyRequest<LogRoute>,
  reply: FastifyReply,
  make: (part: Lines) => Buffer,
): Promise<void> {
  const last = Number(request.headers['last-event-id'] ?? request.query.offset ?? 0);
  const stream = new EventStream(reply, make === asHtml ? ALIVE : undefined);
  const key = JSON.stringify(name);
  await sources
    .use(key, builderLog(view.servers, name), async (source) => {
      let offset = Number.isSafeInteger(last) && last >= 0 ? last : 0;
      for (;;) {
        const part = await source.read(offset, stream.closed);
        if (part.offset < offset) stream.sendBytes(make(shortened(part)));
        if (part.data.length > 0) stream.sendBytes(part.rendered(make));
        offset = endOf(part);
        if (part.isComplete) break;
        await stream.drained();
      }
      stream.send('end', { reason: 'the log is complete' }, String(offset));
    })
    .catch(async (error: unknown) => {
      if (stream.closed.aborted) return;
      if (statusOf(error) === 404 && !(await isRunning(view, name))) {
        stream.send('end', { reason: 'no builder has this log' }, '0');
        return;
      }
      logger.debug(`the log of ${name.imageId}: ${errorLine(error)}`);
      // The browser reconnects, and resumes where it was.
      await delay(PAUSE, undefined, { signal: stream.closed }).catch(() => {});
    })
    .finally(() => stream.end());
}

async function isRunning(view: SiteView, { imageId, uploadId }: LogName): Promise<boolean> {
  const { builds, uploads } = siteRecords(await view.current());
  const build = uploadId === undefined && builds.find((one) => one['image-id'] === imageId);
  const record = build || uploads.find((one) => one['upload-id'] === uploadId);
  return record !== undefined && ['queued', 'building', 'uploading'].includes(record.state);
}
