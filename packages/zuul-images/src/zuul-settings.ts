import {
  FORMAT_NAMES,
  type ImageFormat,
  type ObjectSchema,
  type SettingsOf,
} from '@nodepool-builder/image-builder';
import { REQUIRE_ATTESTATION } from '@nodepool-builder/image-builder/module-kit';

/** Formats with another name in `zuul-images` and in a job's `metadata.format`. */
const FORMAT_ALIASES: Readonly<Record<string, ImageFormat>> = { qcow: 'qcow2' };

const TEXT = { type: 'string', minLength: 1 } as const;

function text(description: string): typeof TEXT & { readonly description: string } {
  return { ...TEXT, description };
}

function file(description: string): ReturnType<typeof text> & { readonly format: 'path' } {
  return { ...TEXT, format: 'path', description };
}

const AUTH = {
  type: 'object',
  additionalProperties: false,
  description: 'Authentication to the API, in one of these ways. Default: none.',
  properties: {
    'token-file': file('File with a bearer token; it is read for each request.'),
    'token-command': {
      type: 'array',
      format: 'program',
      minItems: 1,
      items: TEXT,
      description: 'Command, with arguments, that prints a bearer token.',
    },
    'shared-secret': {
      type: 'object',
      required: ['issuer', 'audience', 'subject', 'secret-file'],
      additionalProperties: false,
      description:
        'The builder mints tokens itself, for a section `auth` of zuul.conf with the driver HS256.',
      properties: {
        issuer: text('`issuer_id` in zuul.conf.'),
        audience: text('`client_id` in zuul.conf.'),
        subject: text("The builder's name in Zuul's access rules."),
        'secret-file': file('File with the value of `secret` in zuul.conf.'),
      },
    },
  },
} as const;

const MQTT = {
  type: 'object',
  required: ['url', 'topic'],
  additionalProperties: false,
  description:
    "Broker to which Zuul's MQTT reporter publishes: the builder polls as soon as a build has ended.",
  properties: {
    url: text('`mqtt://host:1883` or `mqtts://host:8883`.'),
    topic: text('Topic to subscribe to; it may contain wildcards.'),
    username: text('User name.'),
    'password-file': file('File with the password.'),
  },
} as const;

/** Keys of an entry of `zuul-images`. */
export const ZUUL_SETTINGS = {
  type: 'object',
  description: 'of a Zuul job',
  required: ['api-url', 'project', 'pipelines', 'job', 'artifacts'],
  properties: {
    'api-url': text(
      'URL of a tenant of Zuul, as a browser shows it: `https://zuul.example.com/t/example`. The address of Zuul alone ' +
        'suffices if it has one tenant.',
    ),
    project: text('Short name: `opendev/system-config`, without the Git server.'),
    pipelines: {
      type: 'array',
      minItems: 1,
      items: TEXT,
      description: 'A successful build in any of these is imported.',
    },
    job: text('Job that builds the image.'),
    branch: text('Only builds of this branch. Default: all builds, including those without a branch.'),
    'image-name': text(
      '`image_name` in the metadata that the job returns: no other image is used. Default: the name here if the job ' +
        'returns several images, otherwise any.',
    ),
    artifacts: {
      type: 'array',
      minItems: 1,
      description: 'The artifact that contains the image, for each format.',
      items: {
        type: 'object',
        required: ['format', 'type'],
        additionalProperties: false,
        properties: {
          format: {
            enum: [...FORMAT_NAMES, ...Object.keys(FORMAT_ALIASES)],
            description: 'Format; `qcow` means `qcow2`.',
          },
          type: text('`type` in the metadata of the artifact.'),
        },
      },
    },
    auth: AUTH,
    'ca-file': file(
      'PEM file with the certificates of further authorities to trust, for the API, the artifacts and the MQTT broker.',
    ),
    'poll-interval': {
      type: 'number',
      minimum: 1,
      maximum: 86_400,
      default: 60,
      description: 'Seconds between two polls.',
    },
    mqtt: MQTT,
    's3-endpoint': text('URL of the object store with the buckets of `s3://` URLs.'),
    'allowed-hosts': {
      type: 'array',
      items: TEXT,
      description:
        'Names or addresses of hosts in loopback, link-local or private networks that may serve ' +
        'artifacts. Default: none, unless `api-url` or `s3-endpoint` is in such a network.',
    },
    'require-sha256': {
      type: 'boolean',
      default: false,
      description: 'Reject a build whose job returns no `sha256` of the image.',
    },
    'require-attestation': {
      ...REQUIRE_ATTESTATION,
      description:
        'Attestations that an artifact must have before it is imported. They are sigstore bundles about the unpacked ' +
        'file: artifacts of the build with the `type` `attestation` in their metadata, or the file next to the artifact ' +
        'whose URL has the additional suffix `.sigstore.json`. They name the file like the URL, without `.zst`, `.xz` or `.gz`. ' +
        'Default: none.',
    },
  },
} as const satisfies ObjectSchema;

/** An image that a Zuul job builds: an entry of `zuul-images`. */
export type ZuulSettings = SettingsOf<typeof ZUUL_SETTINGS>;

/** Ways to authenticate to the API. */
export type AuthSettings = NonNullable<ZuulSettings['auth']>;

/** The broker to which Zuul's MQTT reporter publishes. */
export type MqttSettings = NonNullable<ZuulSettings['mqtt']> & Pick<ZuulSettings, 'ca-file'>;

/** Resolves the alias of a format. */
export function artifactFormat(format: string): ImageFormat {
  return FORMAT_ALIASES[format] ?? (format as ImageFormat);
}

/** Formats of the artifacts, without aliases. */
export function artifactFormats({ artifacts }: Pick<ZuulSettings, 'artifacts'>): readonly ImageFormat[] {
  return artifacts.map(({ format }) => artifactFormat(format));
}

/** Settings of the broker; undefined without one. */
export function brokerOf({ mqtt, 'ca-file': caFile }: ZuulSettings): MqttSettings | undefined {
  return mqtt && { ...mqtt, ...(caFile !== undefined && { 'ca-file': caFile }) };
}

/** Returns the settings with the default of `image-name`, the name of the disk image. */
export function imageSourceOf(
  name: string,
  settings: ZuulSettings,
): ZuulSettings & { readonly 'image-name': string; readonly isNameConfigured: boolean } {
  const { 'image-name': configured } = settings;
  return { ...settings, 'image-name': configured ?? name, isNameConfigured: configured !== undefined };
}
