import {
  FORMAT_NAMES,
  type ImageFormat,
  type ObjectSchema,
  type SettingsOf,
} from '@nodepool-builder/image-builder';
import { BUILD_TIMEOUT, REQUIRE_ATTESTATION } from '@nodepool-builder/image-builder/internal';

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
    'token-file': file('File with a bearer token, which is read for each request.'),
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
        'Secret of a zuul.conf section `auth` with the driver HS256, with which the builder mints tokens.',
      properties: {
        issuer: text('`issuer_id` in zuul.conf.'),
        audience: text('`client_id` in zuul.conf.'),
        subject: text("The builder's name in Zuul's access rules."),
        'secret-file': file('File with the value of `secret` in zuul.conf.'),
      },
    },
    'client-credentials': {
      type: 'object',
      required: ['issuer', 'client-id', 'secret-file'],
      additionalProperties: false,
      description:
        'OpenID provider that issues tokens with the client credentials grant (RFC 6749, section 4.4).',
      properties: {
        issuer: text("The provider's issuer URL."),
        'client-id': text("The builder's client ID at the provider."),
        'secret-file': file("File with the client's secret."),
        scope: text('Scope of the token, if the provider requires it.'),
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
    url: text(
      '`mqtt://host:1883` or `mqtts://user@host:8883`, with the user name if the broker requires one.',
    ),
    topic: text('Topic to subscribe to, optionally with wildcards.'),
    'password-file': file("File with the user's password."),
    'ca-file': file("PEM file with the broker's certificate authorities."),
  },
} as const;

/** Keys of an entry of `zuul-images`. */
export const ZUUL_SETTINGS = {
  type: 'object',
  description: 'of a Zuul job',
  required: ['api-url', 'project', 'pipelines', 'job', 'artifacts'],
  properties: {
    'api-url': text(
      "URL of a tenant's page or API: `https://zuul.example.com/t/TENANT`. If Zuul has only one tenant, also the URL of " +
        'Zuul or of its API.',
    ),
    project: text('Short name without the Git server, such as `opendev/system-config`.'),
    pipelines: {
      type: 'array',
      minItems: 1,
      items: TEXT,
      description: 'Successful builds in any of these pipelines are imported.',
    },
    job: text('Job that builds the image.'),
    branch: text('Only builds of this branch. Default: all builds, including those without a branch.'),
    'image-name': text(
      'Required `image_name` in the metadata that the job returns. Default: the value of `name` if the job returns ' +
        'several images, otherwise any.',
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
          type: text("`type` in the artifact's metadata."),
        },
      },
    },
    auth: AUTH,
    'ca-file': file(
      'PEM file with additional trusted certificate authorities for the API and the artifacts.',
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
      description: 'Whether to reject a build whose job returns no `sha256` of the image.',
    },
    'require-attestation': {
      ...REQUIRE_ATTESTATION,
      description:
        'Attestations that an artifact must have before it is imported. They are sigstore bundles about the unpacked ' +
        'file, with the name in the URL without `.zst`, `.xz` or `.gz`. A bundle is an artifact of the build with the ' +
        "metadata `type` `attestation`, or a file with the artifact's URL plus `.sigstore.json`. Default: none.",
    },
    pause: {
      type: 'boolean',
      default: false,
      description: 'No new image is imported, and `image-build` is not offered.',
    },
    'build-timeout': {
      type: 'number',
      minimum: 1,
      default: BUILD_TIMEOUT,
      description: 'Timeout of a download and its conversions, in seconds.',
    },
  },
} as const satisfies ObjectSchema;

/** An image that a Zuul job builds: an entry of `zuul-images`. */
export type ZuulSettings = SettingsOf<typeof ZUUL_SETTINGS>;

/** Ways to authenticate to the API. */
export type AuthSettings = NonNullable<ZuulSettings['auth']>;

/** The broker to which Zuul's MQTT reporter publishes. */
export type MqttSettings = NonNullable<ZuulSettings['mqtt']>;

/** Resolves the alias of a format. */
export function artifactFormat(format: string): ImageFormat {
  return FORMAT_ALIASES[format] ?? (format as ImageFormat);
}

/** Formats of the artifacts, without aliases. */
export function artifactFormats({ artifacts }: Pick<ZuulSettings, 'artifacts'>): readonly ImageFormat[] {
  return artifacts.map(({ format }) => artifactFormat(format));
}
