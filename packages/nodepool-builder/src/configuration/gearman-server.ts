import { X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { createSecureContext } from 'node:tls';
import type { GearmanServer, GearmanTls } from './configuration.ts';
import type { Fault } from './fault.ts';
import { type Finding, toFault } from './finding.ts';
import { NAME, PATH, type SchemaNode } from './schema-node.ts';
import type { ConfigurationSource, GearmanServerSource } from './source.ts';
import type { YamlDocument } from './yaml-document.ts';

const PARTS = ['ca', 'cert', 'key'] as const;

type Part = (typeof PARTS)[number];

/** Keys of TLS settings that this builder does not support. */
const OTHER_TLS_KEYS =
  '^(?!ssl[-_](?:ca|cert|key)$|ssl-server-name$)(?:.*(?:[tT][lL][sS]|[sS][sS][lL]|[cC]ert|CERT|[vV]erify|[sS]ecure|[eE]ncrypt|https).*|(?:.*[-_])?(?:ca|CA|[kK]ey|KEY|pem|PEM)(?:[-_].*)?)$';

/** An entry of `gearman-servers`. */
export const GEARMAN_SERVER_SCHEMA: SchemaNode = {
  type: 'object',
  required: ['host'],
  additionalProperties: false,
  properties: {
    host: { ...NAME, description: 'Name or address of a job server.' },
    port: { type: 'integer', minimum: 1, maximum: 65_535, default: 4730, description: 'Port.' },
    'ssl-ca': {
      ...PATH,
      description:
        "PEM file with the authority that signed the server's certificate. It enables TLS. Default: " +
        'with `ssl-cert`, the authorities that Node.js trusts; otherwise no TLS.',
    },
    'ssl-cert': {
      ...PATH,
      description: "PEM file with the client's certificate. It enables TLS.",
    },
    'ssl-key': { ...PATH, description: 'PEM file with the key of `ssl-cert`, without a passphrase.' },
    'ssl-server-name': {
      ...NAME,
      description: "Name in the server's certificate. Default: `host`.",
    },
    ssl_ca: { ...PATH, description: 'The same as `ssl-ca`.' },
    ssl_cert: { ...PATH, description: 'The same as `ssl-cert`.' },
    ssl_key: { ...PATH, description: 'The same as `ssl-key`.' },
  },
  patternProperties: {
    [OTHER_TLS_KEYS]: {
      not: { not: { enum: [false, null] } },
      $comment: 'name PEM files with ssl-ca, ssl-cert and ssl-key',
    },
  },
};

/** One entry of `gearman-servers` with its defaults. */
export function toGearmanServer(
  source: GearmanServerSource,
  absolute: (path: string) => string,
): GearmanServer {
  const { host, port = 4730, 'ssl-server-name': serverName } = source;
  const files = PARTS.flatMap((part) => {
    const path = source[keyOf(source, part)];
    return path === undefined ? [] : [[part, absolute(path)] as const];
  });
  if (files.length === 0) return { host, port };
  const tls: GearmanTls = { ...Object.fromEntries(files), ...(serverName !== undefined && { serverName }) };
  return { host, port, tls };
}

/** The key in use: nodepool's, with an underscore, or ours. */
function keyOf(source: GearmanServerSource, part: Part): `ssl-${Part}` | `ssl_${Part}` {
  return source[`ssl_${part}`] === undefined ? `ssl-${part}` : `ssl_${part}`;
}

/**
 * Reports invalid TLS settings: a key that is set twice or lacks its counterpart, a file that cannot
 * be read or has other content than its key says.
 */
export async function gearmanServerFaults(
  document: YamlDocument,
  source: ConfigurationSource,
  absolute: (path: string) => string,
): Promise<readonly Fault[]> {
  const findings = (source['gearman-servers'] ?? []).map(async (server, index) => {
    const pointer = `/gearman-servers/${index}`;
    const wrong = keyFindings(server, pointer);
    return wrong.length > 0 ? wrong : await fileFindings(server, pointer, absolute);
  });
  return (await Promise.all(findings)).flat().map((finding) => toFault(document, finding));
}

function keyFindings(server: GearmanServerSource, pointer: string): readonly Finding[] {
  const twice = PARTS.filter(
    (part) => server[`ssl_${part}`] !== undefined && server[`ssl-${part}`] !== undefined,
  ).map((part): Finding => {
    const reason = `means the same as ssl-${part}, which is set too`;
    return { pointer: `${pointer}/ssl_${part}`, reason, remedy: 'remove one of the two' };
  });
  const [ca, cert, key] = PARTS.map((part) => server[keyOf(server, part)]);
  const found = [...twice];
  if ((cert === undefined) !== (key === undefined)) {
    const [there, missing] = cert === undefined ? (['key', 'cert'] as const) : (['cert', 'key'] as const);
    const place = `${pointer}/${keyOf(server, there)}`;
    const reason = `lacks its counterpart, ssl-${missing}`;
    found.push({ pointer: place, reason, remedy: 'name both the certificate and its key, or neither' });
  }
  if (server['ssl-server-name'] !== undefined && ca === undefined && cert === undefined) {
    const reason = 'asks for TLS, but neither ssl-ca nor ssl-cert is set';
    found.push({ pointer: `${pointer}/ssl-server-name`, reason, remedy: 'set ssl-ca, or remove it' });
  }
  return found;
}

/** Checks of the content of each file. */
const CHECKS: Readonly<Record<Part, (pem: string) => unknown>> = {
  ca: (pem) => new X509Certificate(pem),
  cert: (pem) => new X509Certificate(pem),
  key: (pem) => createSecureContext({ key: pem }),
};

async function fileFindings(
  server: GearmanServerSource,
  place: string,
  absolute: (path: string) => string,
): Promise<readonly Finding[]> {
  const found: Finding[] = [];
  const texts: Partial<Record<Part, string>> = {};
  for (const part of PARTS) {
    const key = keyOf(server, part);
    const path = server[key];
    if (path === undefined) continue;
    const pointer = `${place}/${key}`;
    const remedy = `name a PEM file with ${part === 'key' ? 'a key without a passphrase' : 'a certificate'} that this user may read`;
    try {
      const text = await readFile(absolute(path), 'utf8');
      CHECKS[part](text);
      texts[part] = text;
    } catch (error) {
      found.push({ pointer, reason: `cannot be used: ${(error as Error).message}`, remedy });
    }
  }
  if (found.length > 0 || texts.cert === undefined) return found;
  try {
    createSecureContext(texts);
    return [];
  } catch (error) {
    const reason = `does not fit the certificate: ${(error as Error).message}`;
    return [{ pointer: `${place}/${keyOf(server, 'key')}`, reason, remedy: 'name the key of ssl-cert' }];
  }
}
