import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import type { ConnectionOptions } from 'node:tls';
import type { ServerAddress } from '@nodepool-builder/gearman-node';
import type { Diagnostic, SettingsOf, SettingsSchema } from '@nodepool-builder/image-builder';
import { TEXT } from '../yaml/schema-node.ts';
import { isMapping } from '../yaml/yaml-document.ts';

const PARTS = ['ca', 'cert', 'key'] as const;

type Part = (typeof PARTS)[number];

const FILE = { ...TEXT, format: 'path' } as const;

/** Keys of TLS settings that this builder does not support. */
const OTHER_TLS_KEYS =
  '^(?!ssl-(?:ca|cert|key|server-name)$)(?:.*(?:[tT][lL][sS]|[sS][sS][lL]|[cC]ert|CERT|[vV]erify|[sS]ecure|[eE]ncrypt|https).*|(?:.*[-_])?(?:ca|CA|[kK]ey|KEY|pem|PEM)(?:[-_].*)?)$';

/** An entry of `gearman-servers`. */
export const GEARMAN_SERVER_SCHEMA = {
  type: 'object',
  required: ['host'],
  additionalProperties: false,
  properties: {
    host: { ...TEXT, description: 'Name or address of a job server.' },
    port: { type: 'integer', minimum: 1, maximum: 65_535, default: 4730, description: 'Port.' },
    'ssl-ca': {
      ...FILE,
      description:
        "PEM file with the authority that signed the server's certificate. This key enables TLS. Default: with " +
        '`ssl-cert`, the authorities that Node.js trusts; otherwise no TLS.',
    },
    'ssl-cert': {
      ...FILE,
      description: "PEM file with the client's certificate. This key enables TLS.",
    },
    'ssl-key': { ...FILE, description: 'PEM file with the key of `ssl-cert`, without a passphrase.' },
    'ssl-server-name': {
      ...TEXT,
      description: "Name in the server's certificate. Default: `host`.",
    },
  },
  patternProperties: {
    [OTHER_TLS_KEYS]: {
      not: { not: { enum: [false, null] } },
      $comment: 'name PEM files with ssl-ca, ssl-cert and ssl-key',
    },
  },
} as const satisfies SettingsSchema;

/** One entry of `gearman-servers`. */
export type GearmanServer = SettingsOf<typeof GEARMAN_SERVER_SCHEMA>;

/** Address of the embedded job server. */
export const EMBEDDED_SERVER: ServerAddress & { readonly port: number } = { host: '127.0.0.1', port: 4730 };

/** The part of a configuration that names job servers. */
interface Servers {
  readonly 'gearman-servers': readonly GearmanServer[];
}

/** Returns the job servers of a configuration, or the embedded one if it names none. */
export function jobServers({ 'gearman-servers': servers }: Servers): readonly ServerAddress[] {
  return servers.length > 0 ? servers.map(toAddress) : [EMBEDDED_SERVER];
}

/**
 * Returns the job servers of a `nodepool.yaml` in which they have only a host and a port, which is most files. A
 * command that needs nothing else of the file starts three times as fast without the schemas of all modules.
 *
 * @returns undefined for all other files, which the schema has to check
 */
export function plainJobServers(document: unknown): readonly ServerAddress[] | undefined {
  if (!isMapping(document) || typeof document['images-dir'] !== 'string') return undefined;
  const servers = document['gearman-servers'] ?? [];
  if (!Array.isArray(servers) || !servers.every(isPlain)) return undefined;
  return servers.length > 0 ? servers : [EMBEDDED_SERVER];
}

function isPlain(server: unknown): server is ServerAddress {
  if (!isMapping(server)) return false;
  const { host, port = EMBEDDED_SERVER.port, ...others } = server;
  const isPort = typeof port === 'number' && Number.isInteger(port) && port >= 1 && port <= 65_535;
  return typeof host === 'string' && host !== '' && isPort && Object.keys(others).length === 0;
}

/**
 * Returns the address of a job server. Its files are read for each connection, so that the next one uses a renewed
 * certificate.
 */
function toAddress(server: GearmanServer): ServerAddress {
  const { host, port, 'ssl-server-name': servername } = server;
  const files = PARTS.flatMap((part) => {
    const path = server[`ssl-${part}`];
    return path === undefined ? [] : [[part, path] as const];
  });
  if (files.length === 0) return { host, port };
  const tls = (): ConnectionOptions => ({
    ...Object.fromEntries(files.map(([part, path]) => [part, readFileSync(path)])),
    ...(servername !== undefined && { servername }),
  });
  return { host, port, tls };
}

/** Reports a key that lacks its counterpart, and a file that is unreadable or has other content. */
export async function gearmanServerDiagnostics({
  'gearman-servers': servers,
}: Servers): Promise<readonly Diagnostic[]> {
  const found = servers.map(async (server, index) => {
    const keys = [...keyDiagnostics(server)];
    const all = keys.length > 0 ? keys : await fileDiagnostics(server);
    return all.map((one) => ({ ...one, pointer: `/gearman-servers/${index}/${one.pointer}` }));
  });
  return (await Promise.all(found)).flat();
}

function* keyDiagnostics(server: GearmanServer): Iterable<Diagnostic> {
  const { 'ssl-ca': ca, 'ssl-cert': cert, 'ssl-key': key } = server;
  if ((cert === undefined) !== (key === undefined)) {
    const [pointer, missing] = cert === undefined ? ['ssl-key', 'ssl-cert'] : ['ssl-cert', 'ssl-key'];
    const reason = `lacks its counterpart, ${missing}`;
    yield { pointer, reason, remedy: 'name both the certificate and its key, or neither' };
  }
  if (server['ssl-server-name'] !== undefined && ca === undefined && cert === undefined) {
    const reason = 'enables TLS, but neither ssl-ca nor ssl-cert is set';
    yield { pointer: 'ssl-server-name', reason, remedy: 'set ssl-ca, or remove it' };
  }
}

async function fileDiagnostics(server: GearmanServer): Promise<readonly Diagnostic[]> {
  if (PARTS.every((part) => server[`ssl-${part}`] === undefined)) return [];
  // Imported on demand, because Node.js takes 20 ms to load them.
  const [{ X509Certificate }, { createSecureContext }] = await Promise.all([
    import('node:crypto'),
    import('node:tls'),
  ]);
  const checks: Readonly<Record<Part, (pem: string) => unknown>> = {
    ca: (pem) => new X509Certificate(pem),
    cert: (pem) => new X509Certificate(pem),
    key: (pem) => createSecureContext({ key: pem }),
  };
  const found: Diagnostic[] = [];
  const texts: Partial<Record<Part, string>> = {};
  for (const part of PARTS) {
    const pointer = `ssl-${part}` as const;
    const path = server[pointer];
    if (path === undefined) continue;
    try {
      const text = await readFile(path, 'utf8');
      checks[part](text);
      texts[part] = text;
    } catch (error) {
      const content = part === 'key' ? 'a key without a passphrase' : 'a certificate';
      const remedy = `name a PEM file with ${content} that this user may read`;
      found.push({ pointer, reason: `cannot be used: ${(error as Error).message}`, remedy });
    }
  }
  if (found.length > 0 || texts.cert === undefined) return found;
  try {
    createSecureContext(texts);
    return [];
  } catch (error) {
    const reason = `does not match the certificate: ${(error as Error).message}`;
    return [{ pointer: 'ssl-key', reason, remedy: 'name the key of ssl-cert' }];
  }
}
