import { readFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import type { Diagnostic } from '@nodepool-builder/image-builder';
import { imageIdError, importedImageId } from '@nodepool-builder/image-builder/internal';
import { parseApiUrl } from './api/api-url.ts';
import { hasAdminClaim } from './credentials/json-web-token.ts';
import { artifactFormats, type ZuulSettings } from './zuul-settings.ts';

/** Finds errors that the schema cannot express. Messages omit the URL, which may contain a password. */
export function checkZuulSettings(settings: ZuulSettings, name: string): readonly Diagnostic[] {
  return [
    ...imageIds(name),
    ...apiUrl(settings),
    ...gitServer(settings),
    ...distinctFormats(settings),
    ...authentication(settings),
    ...allowedHosts(settings),
    ...adminToken(settings),
    ...url('/mqtt/url', settings.mqtt?.url, 'mqtt or mqtts', true),
    ...url('/s3-endpoint', settings['s3-endpoint'], 'http or https'),
    ...url('/auth/client-credentials/issuer', settings.auth?.['client-credentials']?.issuer, 'http or https'),
  ];
}

/** Checks that image-ids, which begin with the name, are valid file names. */
function imageIds(name: string): readonly Diagnostic[] {
  const error = imageIdError(importedImageId({ image: name, uuid: '0'.repeat(32), endTime: Date.now() }));
  if (error === undefined) return [];
  const reason = `leads to image-ids that builders reject: each ${error}`;
  return [{ pointer: '/name', reason, remedy: 'choose a plain name' }];
}

function apiUrl(settings: ZuulSettings): readonly Diagnostic[] {
  try {
    parseApiUrl(settings['api-url']);
    return [];
  } catch (error) {
    const [reason = '', remedy = ''] = (error as Error).message.replace(/^api-url /, '').split('; ');
    return [{ pointer: '/api-url', reason, remedy }];
  }
}

/**
 * Warns about a long project name. Zuul's API accepts both names of a project, but lists builds only by the short one.
 */
function gitServer({ project }: ZuulSettings): readonly Diagnostic[] {
  const match = /^(?<host>[\w-]+(?:\.[\w-]+)+(?::\d+)?)\/(?<short>.+)/.exec(project);
  if (match?.groups === undefined) return [];
  const { host = '', short = '' } = match.groups;
  const reason = `seems to begin with a Git server, "${host}"`;
  const remedy = `if so, use the short name "${short}", or no build will be found`;
  return [{ pointer: '/project', severity: 'warning', reason, remedy }];
}

function distinctFormats(settings: ZuulSettings): readonly Diagnostic[] {
  const formats = artifactFormats(settings);
  return formats.flatMap((format, index) => {
    if (formats.indexOf(format) === index) return [];
    const pointer = `/artifacts/${index}/format`;
    return [{ pointer, reason: `"${format}" is listed twice`, remedy: 'remove one of the two' }];
  });
}

const AUTH_KINDS = ['token-file', 'token-command', 'shared-secret', 'client-credentials'] as const;

function authentication({ auth }: ZuulSettings): readonly Diagnostic[] {
  if (auth === undefined) return [];
  const kinds = AUTH_KINDS.filter((kind) => auth[kind] !== undefined);
  if (kinds.length === 1) return [];
  const pointer = '/auth';
  return kinds.length === 0
    ? [{ pointer, reason: 'contains no way to authenticate', remedy: `use one of ${AUTH_KINDS.join(', ')}` }]
    : [{ pointer, reason: `has ${kinds.join(' and ')}`, remedy: 'keep one of them' }];
}

/** Checks allowed hosts, which are compared without scheme and port, so that a URL would never match. */
function allowedHosts(settings: ZuulSettings): readonly Diagnostic[] {
  return (settings['allowed-hosts'] ?? []).flatMap((host, index) => {
    if (isIP(host) !== 0 || /^[\w.-]+$/.test(host)) return [];
    const reason = 'is neither a host name nor an address';
    const remedy = 'write it without scheme, port and path: images.example.com or 10.0.0.5';
    return [{ pointer: `/allowed-hosts/${index}`, reason, remedy }];
  });
}

/** Warns about admin tokens, which Zuul rejects by default, and which otherwise permit far more than reading builds. */
function adminToken({ auth }: ZuulSettings): readonly Diagnostic[] {
  if (auth?.['token-command']?.includes('create-auth-token') !== true) return [];
  const reason = "creates tokens with the rights of a tenant's administrator, which Zuul rejects by default";
  return [{ pointer: '/auth/token-command', severity: 'warning', reason, remedy: NO_ADMIN }];
}

const NO_ADMIN = 'use shared-secret, which creates tokens that only read';

/** Warns about an administrator's token in a file, if this host has it. */
export async function* tokenFileDiagnostics({ auth }: ZuulSettings): AsyncGenerator<Diagnostic> {
  const file = auth?.['token-file'];
  const text = file === undefined ? '' : await readFile(file, 'utf8').catch(() => '');
  if (!hasAdminClaim(text)) return;
  const reason = "has a token with the claim zuul.admin, the rights of a tenant's administrator";
  yield { pointer: '/auth/token-file', severity: 'warning', reason, remedy: NO_ADMIN };
}

function url(
  pointer: string,
  text: string | undefined,
  schemes: string,
  mayNameUser = false,
): readonly Diagnostic[] {
  if (text === undefined) return [];
  const parsed = URL.parse(text);
  const isOne = parsed !== null && schemes.split(' or ').includes(parsed.protocol.slice(0, -1));
  if (!isOne || parsed.hostname === '') {
    return [{ pointer, reason: `is not an ${schemes} URL`, remedy: 'correct it' }];
  }
  if (parsed.password === '' && (mayNameUser || parsed.username === '')) return [];
  if (mayNameUser) return [{ pointer, reason: 'contains a password', remedy: 'move it to password-file' }];
  return [{ pointer, reason: 'contains a user name or a password', remedy: 'move them to their own keys' }];
}
