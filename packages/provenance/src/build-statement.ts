import type { Conversion, FinishedBuild, Material, SettingsOf } from '@nodepool-builder/image-builder';
import { imageFileName, objectOf, TEXT } from '@nodepool-builder/image-builder/internal';
import { JsonReader } from '@nodepool-builder/image-builder/plugin';
import { ProvenanceError } from './errors.ts';
import type { Statement, StatementSubject } from './types.ts';

export const SLSA_PROVENANCE = 'https://slsa.dev/provenance/v1';

export const BUILD_TYPE = 'https://nodepool-builder.dev/build/v1';
export const CONVERSION_TYPE = 'https://nodepool-builder.dev/conversion/v1';

/** Name of a build's bill of materials among the subjects. */
export const BILL_OF_MATERIALS = 'bom.cdx.json';

/** Prefix of the URI of a material that has neither an address nor a digest, because SLSA requires one of them. */
const NAMELESS = 'urn:nodepool-builder:material:';

/** The host and the program of a build. */
export interface BuilderIdentity {
  readonly builderId: string;
  readonly version: string;
  readonly host: string;
}

/** Bill of materials of a build, or the reason why there is none. */
export type BillOfMaterialsOutcome = { readonly sha256: string } | { readonly reason: string };

/** Makes the statement of a finished build. */
export function buildStatement(
  { manifest, diskimage, materials, environment }: FinishedBuild,
  { builderId, version, host }: BuilderIdentity,
  parameters: Readonly<Record<string, unknown>>,
  billOfMaterials: BillOfMaterialsOutcome | undefined,
): Statement {
  const imageId = manifest['image-id'];
  const files = manifest.files.map(({ format, sha256 }) => ({
    name: imageFileName(imageId, format),
    sha256,
  }));
  const bill =
    billOfMaterials !== undefined && 'sha256' in billOfMaterials
      ? [{ name: BILL_OF_MATERIALS, sha256: billOfMaterials.sha256 }]
      : [];
  return {
    subjects: [...files, ...bill],
    predicateType: SLSA_PROVENANCE,
    predicate: {
      buildDefinition: {
        buildType: BUILD_TYPE,
        externalParameters: {
          ...parameters,
          'image-id': imageId,
          diskimage: diskimage.name,
          formats: manifest.files.map(({ format }) => format),
          environment,
        },
        internalParameters: { host },
        resolvedDependencies: materials.map(descriptorOf),
      },
      runDetails: {
        builder: { id: builderId, version: { 'nodepool-builder': version } },
        metadata: {
          invocationId: imageId,
          ...(manifest.started !== undefined && { startedOn: manifest.started }),
          ...(manifest.finished !== undefined && { finishedOn: manifest.finished }),
        },
        ...(billOfMaterials !== undefined && { byproducts: [byproductOf(billOfMaterials)] }),
      },
    },
  };
}

/** Makes the statement of a converted file. */
export function conversionStatement(
  { imageId, imageName, source, file }: Conversion,
  { builderId, version, host }: BuilderIdentity,
  finished: Date,
): Statement {
  const sourceName = imageFileName(imageId, source.format);
  return {
    subjects: [{ name: imageFileName(imageId, file.format), sha256: file.sha256 }],
    predicateType: SLSA_PROVENANCE,
    predicate: {
      buildDefinition: {
        buildType: CONVERSION_TYPE,
        externalParameters: {
          'image-id': imageId,
          ...(imageName !== undefined && { diskimage: imageName }),
          from: source.format,
          to: file.format,
        },
        internalParameters: { host },
        resolvedDependencies: [{ name: sourceName, digest: { sha256: source.sha256 } }],
      },
      runDetails: {
        builder: { id: builderId, version: { 'nodepool-builder': version } },
        metadata: { invocationId: imageId, finishedOn: finished.toISOString() },
      },
    },
  };
}

const TIME = { ...TEXT, format: 'date-time' } as const;

const DEPENDENCY = objectOf(
  {},
  {
    name: TEXT,
    uri: TEXT,
    digest: { type: 'object', additionalProperties: TEXT },
    annotations: { type: 'object', additionalProperties: { type: ['string', 'number', 'boolean'] } },
  },
);

const BYPRODUCT = objectOf({}, { name: TEXT, annotations: { type: 'object' } });

const READER = new JsonReader(
  objectOf({
    buildDefinition: objectOf(
      { buildType: TEXT, externalParameters: { type: 'object' } },
      { resolvedDependencies: { type: 'array', items: DEPENDENCY } },
    ),
    runDetails: objectOf(
      { builder: objectOf({ id: TEXT }) },
      {
        metadata: objectOf({}, { invocationId: TEXT, startedOn: TIME, finishedOn: TIME }),
        byproducts: { type: 'array', items: BYPRODUCT },
      },
    ),
  }),
);

/** Facts of a build or a conversion, by this or any other software that writes SLSA provenance. */
export interface BuildFacts {
  readonly kind: 'build' | 'conversion';
  readonly builderId: string;
  /** Image-id; absent in statements of other software. */
  readonly imageId?: string;
  /** Name of the disk image. Absent in statements of other software. */
  readonly imageName?: string;
  readonly startedAt?: Date;
  readonly finishedAt?: Date;
  readonly materials: readonly Material[];
  readonly subjects: readonly StatementSubject[];
  /** SHA-256 of the bill of materials; absent if there is none. */
  readonly billOfMaterials?: string;
  /** Reason why there is no bill of materials. */
  readonly withoutBillOfMaterials?: string;
}

/**
 * Reads the facts of a statement with SLSA provenance.
 *
 * @returns undefined for a predicate of another type
 * @throws ProvenanceError `statement-invalid`
 */
export function buildFactsOf({ subjects, predicateType, predicate }: Statement): BuildFacts | undefined {
  if (predicateType !== SLSA_PROVENANCE) return undefined;
  const { buildDefinition, runDetails } = checked(predicate);
  const { buildType, externalParameters: parameters, resolvedDependencies = [] } = buildDefinition;
  const { builder, metadata = {}, byproducts = [] } = runDetails;
  const { startedOn, finishedOn } = metadata;
  const isOwn = buildType === BUILD_TYPE || buildType === CONVERSION_TYPE;
  const imageId = isOwn ? textOf(parameters['image-id']) : undefined;
  const imageName = isOwn ? textOf(parameters.diskimage) : undefined;
  const bill = subjects.find(({ name }) => name === BILL_OF_MATERIALS);
  const reason = textOf(byproducts.find(({ name }) => name === BILL_OF_MATERIALS)?.annotations?.reason);
  return {
    kind: buildType === CONVERSION_TYPE ? 'conversion' : 'build',
    builderId: builder.id,
    ...(imageId !== undefined && { imageId }),
    ...(imageName !== undefined && { imageName }),
    ...(startedOn !== undefined && { startedAt: new Date(startedOn) }),
    ...(finishedOn !== undefined && { finishedAt: new Date(finishedOn) }),
    materials: resolvedDependencies.map(materialOf),
    subjects,
    ...(bill !== undefined && { billOfMaterials: bill.sha256 }),
    ...(reason !== undefined && { withoutBillOfMaterials: reason }),
  };
}

type Descriptor = SettingsOf<typeof DEPENDENCY>;

function checked(predicate: unknown): ReturnType<(typeof READER)['check']> {
  try {
    return READER.check(predicate, 'predicate');
  } catch (error) {
    const message = `a statement has no valid SLSA provenance: ${(error as Error).message}`;
    throw new ProvenanceError('statement-invalid', message, { cause: error });
  }
}

function descriptorOf({ name, uri, digest, annotations }: Material): Descriptor {
  const hasDigest = Object.keys(digest).length > 0;
  const address = uri ?? (hasDigest ? undefined : NAMELESS + encodeURIComponent(name));
  return {
    name,
    ...(address !== undefined && { uri: address }),
    ...(hasDigest && { digest }),
    ...(annotations !== undefined && { annotations }),
  };
}

function materialOf({ name, uri, digest = {}, annotations }: Descriptor): Material {
  return {
    name: name ?? uri ?? 'unnamed',
    ...(uri !== undefined && !uri.startsWith(NAMELESS) && { uri }),
    digest,
    ...(annotations !== undefined && { annotations }),
  };
}

function byproductOf(outcome: BillOfMaterialsOutcome): object {
  return 'sha256' in outcome
    ? { name: BILL_OF_MATERIALS, digest: { sha256: outcome.sha256 } }
    : {
        name: BILL_OF_MATERIALS,
        uri: 'urn:nodepool-builder:no-bill-of-materials',
        annotations: { reason: outcome.reason },
      };
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}
