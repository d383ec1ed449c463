import { JsonReader } from '@nodepool-builder/image-builder/module-kit';
import { BUILD_ID, PROVIDER_NAME } from '../upload/image-properties.ts';
import type { KeyPair, NovaServer } from './nova-server.ts';

/** Server metadata with the port of the login. */
const PORT = 'nodepool_builder_port';
/** Server metadata with the time of the launch, in ISO 8601. */
const LAUNCHED_AT = 'nodepool_builder_launched_at';

const TEXT = { type: 'string' } as const;
const TIME = { type: 'string', format: 'time' } as const;

/** Record of a launch, complete before its server exists. */
export interface LaunchRecord {
  /** Of the key pair and of the floating IP; the server names it as its key. */
  readonly name: string;
  readonly buildId: string;
  readonly launchedAt: Date;
  /** TCP port of the login. */
  readonly port: number;
}

/** Record of a launch as server metadata. */
export function launchMetadata(
  { buildId, launchedAt, port }: LaunchRecord,
  provider: string,
): Record<string, string> {
  return {
    [PROVIDER_NAME]: provider,
    [BUILD_ID]: buildId,
    [PORT]: String(port),
    [LAUNCHED_AT]: launchedAt.toISOString(),
  };
}

const METADATA = new JsonReader({
  type: 'object',
  required: [BUILD_ID, LAUNCHED_AT, PORT],
  properties: { [BUILD_ID]: TEXT, [LAUNCHED_AT]: TIME, [PORT]: TEXT },
});

/** Reads the metadata of a server; undefined if somebody has changed it beyond recognition. */
export function recordOfServer({ keyName: name, metadata }: NovaServer): LaunchRecord | undefined {
  if (name === undefined) return undefined;
  return readable(() => {
    const { [BUILD_ID]: buildId, [LAUNCHED_AT]: launchedAt, [PORT]: port } = METADATA.check(metadata);
    return { name, buildId, launchedAt: new Date(launchedAt), port: Number(port) };
  });
}

/** Key pair with the record in the comment of its key. */
export function keyPairOfLaunch({ name, ...rest }: LaunchRecord, publicKey: string): KeyPair {
  const [type, key] = publicKey.trim().split(/\s+/);
  return { name, publicKey: `${type} ${key} ${encodeURIComponent(JSON.stringify(rest))}` };
}

const COMMENT = new JsonReader({
  type: 'object',
  required: ['buildId', 'launchedAt', 'port'],
  properties: { buildId: TEXT, launchedAt: TIME, port: { type: 'number' } },
});

/** Reads the comment of a key pair; undefined for a key pair of somebody else. */
export function recordOfKeyPair({ name, publicKey }: KeyPair): LaunchRecord | undefined {
  const [, , comment = ''] = publicKey.trim().split(/\s+/);
  return readable(() => {
    const { buildId, launchedAt, port } = COMMENT.parse(decodeURIComponent(comment));
    return { name, buildId, launchedAt: new Date(launchedAt), port };
  });
}

function readable<T>(read: () => T): T | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}
