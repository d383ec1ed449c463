import { objectOf } from '@nodepool-builder/image-builder/internal';
import type { FastifyInstance } from 'fastify';
import { BUILD_ORIGIN, UPLOAD_ORIGIN } from '../attestation/origin/origin-record.ts';
import { recordSchema, TEXT } from '../terms/record-schema.ts';
import { type ActionName, act } from './actions.ts';
import type { WebContext } from './context.ts';
import { EventStream } from './event-stream.ts';
import { Feed, type Item } from './feed.ts';
import { HttpError } from './http-error.ts';
import { API } from './openapi.ts';
import { readBuildOrigin, readUploadOrigin } from './origins.ts';
import { SITE_RECORDS, type SiteRecords, siteRecords } from './site-records.ts';
import type { Site } from './site-view.ts';

/** Parameter of a path. */
const SUBJECT = objectOf({ id: TEXT });

interface Subject {
  readonly Params: { readonly id: string };
}

/** A list of the API: its key in {@link SiteRecords}, and the key of a record's name. */
const LISTS = [
  { list: 'images', id: 'diskimage', of: 'the disk images of the configuration' },
  { list: 'builds', id: 'image-id', of: 'the builds, newest first' },
  { list: 'uploads', id: 'upload-id', of: 'the uploads, newest first' },
  { list: 'plan', of: 'the next steps of the manager' },
  { list: 'cloud-images', of: 'the images that filters select now' },
  { list: 'builders', of: 'the builders that reply, with their jobs and free disk space' },
  { list: 'servers', of: 'the job servers' },
] as const satisfies readonly { list: keyof SiteRecords; id?: string; of: string }[];

/** Actions of the API. */
const ACTION_ROUTES = [
  ['POST', '/images/:id/rebuild', 'rebuild', 'Has an image built and uploaded now'],
  ['POST', '/images/:id/pause', 'pause', 'Pauses the builds and uploads of a disk image'],
  ['POST', '/images/:id/unpause', 'unpause', 'Resumes the builds and uploads of a disk image'],
  ['POST', '/images/:id/rollback', 'rollback', 'Goes back to the previous image'],
  ['DELETE', '/builds/:id', 'delete-build', 'Has an image deleted everywhere'],
  ['DELETE', '/uploads/:id', 'delete-upload', 'Has an image deleted from one provider'],
  ['POST', '/builds/:id/cancel', 'cancel-build', 'Cancels a build that runs or waits'],
  ['POST', '/uploads/:id/cancel', 'cancel-upload', 'Cancels an upload that runs or waits'],
] as const satisfies readonly (readonly [method: string, path: string, ActionName, summary: string])[];

const ACTION_RESPONSE = {
  ...recordSchema({ done: { ...TEXT, description: 'Description of the effect.' } }),
  description: 'The action has started.',
};

/** Names of the changed records, by list. */
const CHANGE = {
  type: 'object',
  additionalProperties: { type: 'array', items: TEXT },
} as const;

/** The API. The server derives its OpenAPI document from these schemas. */
export function api(server: FastifyInstance, context: WebContext): void {
  const records = async (): Promise<SiteRecords> => siteRecords(await context.view.current());
  const find = async (key: string, list: keyof SiteRecords, id: string) => {
    const all = (await records())[list] as readonly Readonly<Record<string, unknown>>[];
    const found = all.find((one) => one[key] === id);
    if (found === undefined) throw new HttpError(404, `${id} is not in ${list}`);
    return found;
  };
  const everything = {
    summary: 'Everything at once',
    response: { 200: { ...SITE_RECORDS, description: 'The state of the site.' } },
  };
  server.get(`${API}/site`, { schema: everything }, records);
  for (const { list, of: what, ...row } of LISTS) {
    const record = SITE_RECORDS.properties[list].items;
    const all = { type: 'array', items: record, description: `All of them: ${what}.` };
    const summary = `Lists ${what}`;
    server.get(`${API}/${list}`, { schema: { summary, response: { 200: all } } }, async () => {
      return (await records())[list];
    });
    if (!('id' in row)) continue;
    const schema = { summary: `Shows one of ${list}`, params: SUBJECT, response: { 200: record } };
    server.get<Subject>(`${API}/${list}/:id`, { schema }, ({ params }) => find(row.id, list, params.id));
  }
  origins(server, context, (imageId) => find('image-id', 'builds', imageId));
  for (const [method, path, action, summary] of ACTION_ROUTES) {
    server.route<Subject>({
      method,
      url: API + path,
      schema: { summary, params: SUBJECT, response: { 202: ACTION_RESPONSE }, security: [{ token: [] }] },
      handler: async (request, reply) => {
        const done = await act(context, request, action, request.params.id);
        return await reply.code(202).send({ done });
      },
    });
  }
  changes(server, context);
}

/** The origins of builds and uploads. */
function origins(
  server: FastifyInstance,
  context: WebContext,
  requireBuild: (imageId: string) => Promise<unknown>,
): void {
  const schemaOf = (summary: string, body: object) => ({
    schema: { summary, params: SUBJECT, response: { 200: body } },
  });
  const ofBuild = { ...BUILD_ORIGIN, description: 'The materials, the packages and the proofs.' };
  const ofUpload = { ...UPLOAD_ORIGIN, description: 'The proof of the upload.' };
  const about = 'Shows the origin of a build, and the proof states of its uploads';
  server.get<Subject>(`${API}/builds/:id/origin`, schemaOf(about, ofBuild), async ({ params: { id } }) => {
    await requireBuild(id);
    return await readBuildOrigin(context.view, id);
  });
  const proof = 'Shows the proof state of an upload';
  server.get<Subject>(`${API}/uploads/:id/origin`, schemaOf(proof, ofUpload), async ({ params: { id } }) => {
    const origin = await readUploadOrigin(context.view, id);
    if (origin === undefined) throw new HttpError(404, `${id} is not in uploads`);
    return origin;
  });
}

/** Server-sent events with the changed records. */
function changes(server: FastifyInstance, { view }: WebContext): void {
  const feed = new Feed(view, itemsOf);
  const summary = 'Follows changes, as server-sent events';
  const description =
    'Each event `change` has a JSON object of lists and the names of their records that were changed, added or removed ' +
    'since `id`, the last event. The first event follows at once, if there is a change since then.';
  const response = { 200: { ...CHANGE, description: 'The data of each event.' } };
  const schema = { summary, description, produces: ['text/event-stream'], response };
  server.get(`${API}/events`, { schema }, async (request, reply) => {
    const { version } = feed.update(await view.current());
    const last = request.headers['last-event-id'];
    const stream = new EventStream(reply);
    let known: ReadonlySet<string> = new Set(feed.update(await view.current()).items.keys());
    feed.follow(typeof last === 'string' ? last : version, stream.closed, ({ changed, version: current }) => {
      const now = new Set(feed.ids);
      const names = [...changed.keys(), ...[...known].filter((id) => !now.has(id))];
      known = now;
      const lists = Object.groupBy(names, (id) => id.slice(0, id.indexOf('/')));
      const data = Object.entries(lists).map(([list, ids = []]) => {
        return [list, ids.map((id) => id.slice(list.length + 1))] as const;
      });
      stream.send('change', Object.fromEntries(data), current);
    });
  });
}

function* itemsOf(site: Site): Iterable<readonly [string, Item<undefined>]> {
  const records = siteRecords(site);
  for (const { list, ...row } of LISTS) {
    const all: readonly Readonly<Record<string, unknown>>[] = records[list];
    if (!('id' in row)) yield [`${list}/`, { key: JSON.stringify(all), value: undefined }];
    else {
      for (const one of all) {
        yield [`${list}/${String(one[row.id])}`, { key: JSON.stringify(one), value: undefined }];
      }
    }
  }
}
