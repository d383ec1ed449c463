import type { FastifyInstance } from 'fastify';
import { printable } from '../terms/printable.ts';
import type { WebContext } from './context.ts';
import { type SiteRecords, siteRecords } from './site-records.ts';
import { RECORDS_PROBLEM, type Site } from './site-view.ts';

/** A row of a list, with the keys of nodepool's JSON. */
type Row = Readonly<Record<string, string | number | boolean | readonly string[] | null>>;

interface List {
  /** Headings of the columns in the text, by key. */
  readonly headings: Readonly<Record<string, string>>;
  readonly rows: (records: SiteRecords, site: Site) => readonly Row[];
}

interface ListRoute {
  readonly Querystring: { readonly fields?: string };
}

const LIST_SCHEMA = { querystring: { type: 'object', properties: { fields: { type: 'string' } } } } as const;

const BUSY_OR_GOOD = new Set(['queued', 'building', 'uploading', 'ready', 'failed', 'deleting']);

/** The lists at the addresses of nodepool's web server. */
const LISTS: Readonly<Record<string, List>> = {
  'image-list': {
    headings: {
      id: 'Build ID',
      upload_id: 'Upload ID',
      provider: 'Provider',
      image: 'Image',
      external_name: 'Provider Image Name',
      external_id: 'Provider Image ID',
      state: 'State',
      age: 'Age',
    },
    rows: ({ uploads }) =>
      uploads
        .filter(({ state }) => BUSY_OR_GOOD.has(state))
        .map((upload) => ({
          id: upload['image-id'],
          upload_id: upload['upload-id'],
          provider: upload.provider,
          image: upload.diskimage,
          external_name: upload['image-name'],
          external_id: upload['external-id'],
          state: upload.state === 'queued' ? 'uploading' : upload.state,
          age: secondsOf(upload.ended ?? upload.requested),
        })),
  },
  'dib-image-list': {
    headings: {
      id: 'ID',
      image: 'Image',
      builder: 'Builder',
      formats: 'Formats',
      state: 'State',
      age: 'Age',
    },
    rows: ({ builds }, { configuration }) =>
      builds
        .filter(({ state }) => BUSY_OR_GOOD.has(state))
        .map((build) => ({
          id: build['image-id'],
          image: build.diskimage,
          builder: build.host,
          formats: configuration.diskimages.find(({ name }) => name === build.diskimage)?.formats ?? [],
          state: build.state === 'queued' ? 'building' : build.state,
          age: secondsOf(build.ended ?? build.requested),
        })),
  },
  'image-status': {
    headings: { image: 'Image', paused: 'Paused', build_request: 'Build Request' },
    rows: ({ images, plan }) =>
      images.map(({ diskimage: image, paused, state }) => {
        const isDue = plan.some(
          (step) => step.what === 'build' && step.subject === image && step.when === 'now',
        );
        const isBuilt = state === 'building' || state === 'queued';
        const request = isBuilt ? 'building' : isDue ? 'pending' : null;
        return { image, paused, build_request: request };
      }),
  },
};

/**
 * Serves nodepool's addresses: a table, or JSON if it is requested or the address ends with `.json`. `/ready` reports
 * whether a job server replies and the records can be read.
 */
export function nodepoolAddresses(server: FastifyInstance, { view }: WebContext): void {
  server.get('/ready', async (_request, reply) => {
    const { problems, servers } = await view.current();
    const silent = servers.filter(({ functions }) => functions === undefined).length;
    const isReady = silent < servers.length && !problems.some((one) => one.startsWith(RECORDS_PROBLEM));
    return await reply
      .code(isReady ? 200 : 503)
      .type('text/plain; charset=UTF-8')
      .send(isReady ? 'OK' : printable(problems.join('\n')));
  });
  for (const [name, { headings, rows }] of Object.entries(LISTS)) {
    for (const path of [`/${name}`, `/${name}.json`]) {
      server.get<ListRoute>(path, { schema: LIST_SCHEMA }, async ({ query, headers }, reply) => {
        const wanted = query.fields?.split(',');
        const keys = Object.keys(headings).filter((key) => wanted?.includes(key) ?? true);
        const site = await view.current();
        const found = rows(siteRecords(site), site).map((row) =>
          Object.fromEntries(keys.map((key) => [key, row[key] ?? null])),
        );
        const isJson = path.endsWith('.json') || wantsJson(headers.accept);
        return await reply
          .header('vary', 'accept')
          .type(isJson ? 'application/json' : 'text/plain; charset=UTF-8')
          .send(printable(isJson ? JSON.stringify(found) : prettyTable(found, keys, headings)));
      });
    }
  }
}

/** Returns whether the client requests JSON. Browsers and curl get text, as from nodepool. */
function wantsJson(accept = ''): boolean {
  const types = accept.split(',').map((part) => {
    const [type = '', ...parameters] = part.split(';').map((text) => text.trim());
    const quality = Number(parameters.find((text) => text.startsWith('q='))?.slice(2) ?? 1);
    return { type, quality };
  });
  const qualityOf = (type: string): number => types.find((one) => one.type === type)?.quality ?? 0;
  return qualityOf('application/json') > Math.max(qualityOf('text/html'), qualityOf('text/plain'));
}

function secondsOf(iso: string | null): number | null {
  return iso === null ? null : Math.floor(Date.parse(iso) / 1000);
}

/** Formats a table like Python's prettytable, because scripts may parse it. */
function prettyTable(
  rows: readonly Row[],
  keys: readonly string[],
  headings: Readonly<Record<string, string>>,
): string {
  const cells = rows.map((row) => keys.map((key) => cellOf(key, row[key] ?? null)));
  const lines = [keys.map((key) => headings[key] ?? key), ...cells];
  const widths = keys.map((_, column) => Math.max(...lines.map((line) => line[column]?.length ?? 0)));
  const rule = `+${widths.map((width) => '-'.repeat(width + 2)).join('+')}+`;
  const [head, ...body] = lines.map((line) => {
    return `| ${line.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(' | ')} |`;
  });
  return [rule, head, rule, ...body, rule].join('\n');
}

function cellOf(key: string, value: Row[string] | null): string {
  if (value === null || value === undefined) return 'None';
  if (value === true || value === false) return value ? 'True' : 'False';
  if (key !== 'age')
    return [value]
      .flat()
      .join(',')
      .replaceAll(/\p{Cc}+/gu, ' ');
  const seconds = Math.max(0, Math.floor(Date.now() / 1000) - Number(value));
  const parts = [seconds / 86_400, (seconds / 3600) % 24, (seconds / 60) % 60, seconds % 60];
  return parts.map((part) => String(Math.floor(part)).padStart(2, '0')).join(':');
}
