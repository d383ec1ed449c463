import { hash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { FastifyInstance } from 'fastify';

const TYPES = {
  'page.css': 'text/css; charset=utf-8',
  'page.js': 'text/javascript; charset=utf-8',
  'log.js': 'text/javascript; charset=utf-8',
  'live.js': 'text/javascript; charset=utf-8',
  'icon.svg': 'image/svg+xml',
} as const;

type AssetName = keyof typeof TYPES;

/** The files that pages load. The sources and their compiled form are at the same depth. */
const ASSETS = new Map(
  (Object.keys(TYPES) as AssetName[]).map((name) => {
    return [name, readFileSync(join(import.meta.dirname, '../../web', name))] as const;
  }),
);

/** One directory for all assets, because scripts import each other by relative paths. It changes with the contents. */
const DIRECTORY = hash('sha256', Buffer.concat([...ASSETS.values()])).slice(0, 12);

/** Path of a file. */
export function assetPath(name: AssetName): string {
  return `/assets/${DIRECTORY}/${name}`;
}

/** Serves the files, which browsers cache. */
export function assets(server: FastifyInstance): void {
  for (const [name, content] of ASSETS) {
    server.get(assetPath(name), async (_request, reply) => {
      return await reply
        .type(TYPES[name])
        .header('cache-control', 'public, max-age=31536000, immutable')
        .send(content);
    });
  }
}
