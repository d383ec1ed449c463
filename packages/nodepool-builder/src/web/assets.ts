import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { FastifyInstance } from 'fastify';

const TYPES = {
  'page.css': 'text/css; charset=utf-8',
  'page.js': 'text/javascript; charset=utf-8',
  'log.js': 'text/javascript; charset=utf-8',
  'icon.svg': 'image/svg+xml',
} as const;

type AssetName = keyof typeof TYPES;

/** The files that pages load; the sources and their compiled form are at the same depth. */
const ASSETS = new Map(
  (Object.keys(TYPES) as AssetName[]).map((name) => {
    const content = readFileSync(join(import.meta.dirname, '../../web', name));
    const digest = createHash('sha256').update(content).digest('hex').slice(0, 12);
    return [name, { content, path: `/assets/${digest}/${name}` }] as const;
  }),
);

/** Path of a file; it changes with the content. */
export function assetPath(name: AssetName): string {
  return ASSETS.get(name)?.path ?? '';
}

/** Serves the files, which browsers keep. */
export function assets(server: FastifyInstance): void {
  for (const [name, { content, path }] of ASSETS) {
    server.get(path, async (_request, reply) => {
      return await reply
        .type(TYPES[name])
        .header('cache-control', 'public, max-age=31536000, immutable')
        .send(content);
    });
  }
}
