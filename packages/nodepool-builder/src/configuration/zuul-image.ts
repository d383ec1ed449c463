import type { ZuulImage } from '@nodepool-builder/zuul-images';
import { programPath } from './program-path.ts';
import { artifactFormat, type ZuulAuthSource, type ZuulImageSource } from './zuul-images-source.ts';

type Authentication = ZuulImage['authentication'];
type Absolute = (path: string) => string;

/**
 * Which builds of Zuul make an image, from its entry of `zuul-images`.
 *
 * @param absolute makes a path absolute
 */
export function toZuulImage(entry: ZuulImageSource, absolute: Absolute): ZuulImage {
  const { tenant, branch, mqtt } = entry;
  const { 'image-name': imageName, 'ca-file': caFile, 's3-endpoint': s3Endpoint } = entry;
  const { 'allowed-hosts': allowedHosts, 'require-sha256': requireSha256 } = entry;
  return {
    apiUrl: entry['api-url'],
    ...(tenant !== undefined && { tenant }),
    project: entry.project,
    pipelines: entry.pipelines,
    job: entry.job,
    ...(branch !== undefined && { branch }),
    ...(imageName !== undefined && { imageName }),
    artifacts: entry.artifacts.map(({ format, type }) => ({ format: artifactFormat(format), type })),
    authentication: toAuthentication(entry.auth, absolute),
    ...(caFile !== undefined && { caFile: absolute(caFile) }),
    pollInterval: entry['poll-interval'] ?? 60,
    ...(mqtt !== undefined && { mqtt: toMqtt(mqtt, absolute) }),
    ...(s3Endpoint !== undefined && { s3Endpoint }),
    ...(allowedHosts !== undefined && { allowedHosts }),
    ...(requireSha256 !== undefined && { requireSha256 }),
  };
}

function toMqtt(
  mqtt: NonNullable<ZuulImageSource['mqtt']>,
  absolute: Absolute,
): NonNullable<ZuulImage['mqtt']> {
  const { url, topic, username, 'password-file': passwordFile, 'ca-file': caFile } = mqtt;
  return {
    url,
    topic,
    ...(username !== undefined && { username }),
    ...(passwordFile !== undefined && { passwordFile: absolute(passwordFile) }),
    ...(caFile !== undefined && { caFile: absolute(caFile) }),
  };
}

type Read<Source> = (source: Source, absolute: Absolute) => Authentication;

const KINDS: { readonly [Kind in keyof ZuulAuthSource]-?: Read<NonNullable<ZuulAuthSource[Kind]>> } = {
  'token-file': (path, absolute) => ({ type: 'token-file', path: absolute(path) }),
  'token-command': ([program = '', ...args], absolute) => ({
    type: 'token-command',
    command: [programPath(program, absolute), ...args],
  }),
  'shared-secret': ({ issuer, audience, subject, 'secret-file': secretFile }, absolute) => ({
    type: 'shared-secret',
    issuer,
    audience,
    subject,
    secretFile: absolute(secretFile),
  }),
  'client-credentials': ({ issuer, 'client-id': clientId, 'secret-file': secretFile, scope }, absolute) => ({
    type: 'client-credentials',
    issuer,
    clientId,
    secretFile: absolute(secretFile),
    ...(scope !== undefined && { scope }),
  }),
};

/** The keys of `auth`, each of them one way to authenticate. */
export const AUTH_KINDS: readonly (keyof ZuulAuthSource)[] = Object.keys(KINDS) as (keyof ZuulAuthSource)[];

function toAuthentication(auth: ZuulAuthSource = {}, absolute: Absolute): Authentication {
  const kind = AUTH_KINDS.find((name) => auth[name] !== undefined);
  if (kind === undefined) return { type: 'none' };
  const read: Read<never> = KINDS[kind];
  return read(auth[kind] as never, absolute);
}
