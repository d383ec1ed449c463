import { isIP } from 'node:net';
import { imageIdFault, importedImageId } from '@nodepool-builder/image-builder';
import { parseApiUrl } from '@nodepool-builder/zuul-images';
import type { Fault } from './fault.ts';
import { type Finding, toFault } from './finding.ts';
import { isMapping } from './scalar.ts';
import type { ConfigurationSource } from './source.ts';
import type { YamlDocument } from './yaml-document.ts';
import { AUTH_KINDS } from './zuul-image.ts';
import { artifactFormat, type ZuulImageEntry, zuulImageEntries } from './zuul-images-source.ts';

type Check = (place: ZuulImageEntry) => readonly Finding[];

const CHECKS: readonly Check[] = [
  imageIds,
  apiUrl,
  gitServer,
  artifactFormats,
  authentication,
  allowedHosts,
  adminToken,
  ({ pointer, entry }) => url(`${pointer}/mqtt/url`, entry.mqtt?.url, 'mqtt or mqtts'),
  ({ pointer, entry }) => url(`${pointer}/s3-endpoint`, entry['s3-endpoint'], 'http or https'),
  ({ pointer, entry: { auth } }) => {
    const key = `${pointer}/auth/client-credentials/issuer`;
    return url(key, auth?.['client-credentials']?.issuer, 'http or https');
  },
  rebuildTimes,
];

/** A URL in this list would never match: hosts are compared without scheme and port. */
function allowedHosts({ pointer, entry }: ZuulImageEntry): readonly Finding[] {
  return (entry['allowed-hosts'] ?? []).flatMap((host, index) =>
    isIP(host) !== 0 || /^[\w.-]+$/.test(host)
      ? []
      : {
          pointer: `${pointer}/allowed-hosts/${index}`,
          reason: 'is neither the name nor the address of a host',
          remedy: 'write it without scheme, port and path, as in images.example.com or 10.0.0.5',
        },
  );
}

/** What the schema leaves open of `zuul-images`. Of URLs nothing is shown: they may hold a password. */
export function zuulImageFaults(document: YamlDocument, source: ConfigurationSource): readonly Fault[] {
  const entries = zuulImageEntries(source['zuul-images']);
  return [...entries.flatMap((entry) => CHECKS.flatMap((check) => check(entry))), ...sharedNames(source)].map(
    (finding) => toFault(document, finding),
  );
}

/**
 * The one fault of a file that has `zuul-images` as Zuul's specification shows it: an entry without a name, where
 * the schema would take each of its keys for a name.
 */
export function namelessZuulImage(document: YamlDocument): readonly Fault[] | undefined {
  const pointer = '/zuul-images';
  const images = isMapping(document.value) ? document.value['zuul-images'] : undefined;
  if (!isMapping(images) || typeof images['api-url'] !== 'string') return undefined;
  const reason = 'has an image without a name';
  const remedy = 'write "- name: …" before its keys, or its name as the key of them all';
  return [toFault(document, { pointer, reason, remedy })];
}

/** Both are offered as `image-build:<name>`, and named by providers. */
function sharedNames(source: ConfigurationSource): readonly Finding[] {
  const names = new Set((source.diskimages ?? []).map(({ name }) => name));
  return zuulImageEntries(source['zuul-images'])
    .filter(({ entry }) => names.has(entry.name))
    .map(({ namePointer: pointer, entry }) => ({
      pointer,
      reason: `"${entry.name}" is the name of one of diskimages, too`,
      remedy: 'rename or remove one of the two',
    }));
}

/** An image-id begins with the name, and becomes a part of file names. */
function imageIds({ namePointer: pointer, entry: { name } }: ZuulImageEntry): readonly Finding[] {
  const fault = imageIdFault(importedImageId({ image: name, uuid: '0'.repeat(32), endTime: Date.now() }));
  if (fault === undefined) return [];
  return [
    {
      pointer,
      reason: `leads to image-ids that builders refuse: each ${fault}`,
      remedy: 'choose a plain name',
    },
  ];
}

function apiUrl({ pointer: place, entry }: ZuulImageEntry): readonly Finding[] {
  try {
    const { tenant } = parseApiUrl(entry['api-url']);
    if (entry.tenant === undefined || tenant === undefined || tenant === entry.tenant) return [];
    const reason = `is "${entry.tenant}", but api-url names the tenant "${tenant}"`;
    return [{ pointer: `${place}/tenant`, reason, remedy: 'correct one of the two, or leave tenant out' }];
  } catch (error) {
    const [reason = '', remedy = ''] = (error as Error).message.replace(/^api-url /, '').split('; ');
    return [{ pointer: `${place}/api-url`, reason, remedy }];
  }
}

/** Zuul's API knows both names of a project, and lists builds by the short one only. */
function gitServer({ pointer, entry: { project } }: ZuulImageEntry): readonly Finding[] {
  const match = /^(?<host>[\w-]+(?:\.[\w-]+)+(?::\d+)?)\/(?<short>.+)/.exec(project);
  if (match?.groups === undefined) return [];
  const { host = '', short = '' } = match.groups;
  return [
    {
      pointer: `${pointer}/project`,
      severity: 'warning',
      reason: `begins with what looks like a Git server, "${host}"`,
      remedy: `if it is one, write the short name "${short}", or no build will be found`,
    },
  ];
}

function artifactFormats({ pointer, entry: { artifacts } }: ZuulImageEntry): readonly Finding[] {
  const formats = artifacts.map(({ format }) => artifactFormat(format));
  return formats.flatMap((format, index) => {
    if (formats.indexOf(format) === index) return [];
    const reason = `"${format}" is there already`;
    return [{ pointer: `${pointer}/artifacts/${index}/format`, reason, remedy: 'remove one of the two' }];
  });
}

function authentication({ pointer: place, entry: { auth } }: ZuulImageEntry): readonly Finding[] {
  if (auth === undefined) return [];
  const kinds = AUTH_KINDS.filter((kind) => auth[kind] !== undefined);
  if (kinds.length === 1) return [];
  const pointer = `${place}/auth`;
  return kinds.length === 0
    ? [{ pointer, reason: 'names no way to authenticate', remedy: `use one of ${AUTH_KINDS.join(', ')}` }]
    : [{ pointer, reason: `has ${kinds.join(' and ')}`, remedy: 'keep one of them' }];
}

/** Zuul refuses those tokens by default, and elsewhere they can do far more than read builds. */
function adminToken({ pointer, entry: { auth } }: ZuulImageEntry): readonly Finding[] {
  if (auth?.['token-command']?.includes('create-auth-token') !== true) return [];
  return [
    {
      pointer: `${pointer}/auth/token-command`,
      severity: 'warning',
      reason: "makes tokens with the rights of a tenant's administrator, which Zuul refuses by default",
      remedy: 'use shared-secret, which makes tokens that only read',
    },
  ];
}

function url(pointer: string, text: string | undefined, schemes: string): readonly Finding[] {
  if (text === undefined) return [];
  const parsed = URL.parse(text);
  const isOne = parsed !== null && schemes.split(' or ').includes(parsed.protocol.slice(0, -1));
  if (!isOne || parsed.hostname === '') {
    return [{ pointer, reason: `is no ${schemes} URL`, remedy: 'correct it' }];
  }
  if (parsed.username === '' && parsed.password === '') return [];
  return [
    { pointer, reason: 'holds a user or a password', remedy: 'take them out; there are keys for them' },
  ];
}

function rebuildTimes({ pointer: place, entry }: ZuulImageEntry): readonly Finding[] {
  return (['rebuild-age', 'rebuild-cron'] as const)
    .filter((key) => entry[key] !== undefined)
    .map((key) => ({
      pointer: `${place}/${key}`,
      severity: 'warning',
      reason: 'has no effect: a new image is taken when Zuul has built one',
      remedy: 'remove it, and let the job run when one is due',
    }));
}
