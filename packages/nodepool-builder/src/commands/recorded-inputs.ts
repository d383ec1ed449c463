import { existsSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import type { BuilderModule, DiskImage, ObjectSchema, SettingsContext } from '@nodepool-builder/image-builder';
import { JsonReader } from '@nodepool-builder/image-builder/module-kit';
import type { BuildFacts } from '@nodepool-builder/provenance';
import type { Configuration, DiskImageConfiguration } from '../configuration/configuration.ts';
import { digestOf } from '../configuration/disk-image.ts';
import { ownSettings } from '../configuration/values.ts';
import type { Modules } from '../modules.ts';
import { completed } from './masked-values.ts';
import { CommandError, findByName, messageOf } from './output.ts';
import { TEXT } from './record-schema.ts';

/** A disk image as a statement records it; anything else is that of the configuration. */
export type RecordedDiskImage = DiskImage &
  Pick<DiskImageConfiguration, 'builder' | 'settings' | 'digest'> & { readonly module: BuilderModule };

/** Parameters of a build. Statements of earlier releases lack those after `environment`. */
const PARAMETERS = new JsonReader({
  type: 'object',
  properties: {
    'configuration-digest': TEXT,
    builder: TEXT,
    settings: { type: 'object' },
    environment: { type: 'object', additionalProperties: TEXT },
    options: { type: 'object' },
    release: { type: ['string', 'number'] },
    'elements-dir': TEXT,
    'script-dir': TEXT,
  },
});

type Parameters = ReturnType<(typeof PARAMETERS)['check']>;

interface Site {
  readonly configuration: Configuration;
  readonly modules: Modules;
}

/**
 * The disk image of a build with the recorded settings. Secrets, limits and validation come from the disk image of today,
 * and anything that an earlier release did not record.
 *
 * @throws CommandError if another version recorded settings that its builder does not understand, or if the disk image is
 *   no longer in the configuration and the statement does not have everything
 */
export function recordedDiskImage(recorded: BuildFacts, site: Site): RecordedDiskImage {
  const { configuration, modules } = site;
  const name = recorded.imageName ?? '';
  const today = configuration.diskimages.find((diskimage) => diskimage.name === name);
  const parameters = checked(recorded, 'the recorded parameters', () =>
    PARAMETERS.check(recorded.parameters, 'parameters'),
  );
  // The library attests builds without a configuration: these have no settings.
  const builder = parameters.builder ?? today?.builder ?? '';
  const module = modules.builders.get(builder);
  if (module === undefined) {
    if (today === undefined) findByName(configuration.diskimages, 'disk image', name, configuration.file);
    throw new CommandError(
      `builder "${builder}", which built disk image "${name}", is unknown; add its module to plugins`,
    );
  }
  const { settings, missing } = settingsOf(recorded, parameters, { module, today, site });
  const variables = completed(parameters.environment ?? today?.envVars ?? {}, today?.envVars ?? {});
  const { options, release, missing: missingOptions } = optionsOf(parameters, today);
  const elementsDir = directoryOf(parameters['elements-dir'], today?.elementsDir ?? elementsDirOf(site));
  const scriptDir = directoryOf(parameters['script-dir'], today?.scriptDir ?? scriptDirOf(site));
  const { elementsDir: _, scriptDir: __, release: ___, ...rest } = today ?? { name, formats: [] };
  const diskimage = {
    ...rest,
    builder,
    settings,
    envVars: variables.values,
    options,
    ...(release !== undefined && { release }),
    ...(elementsDir !== undefined && { elementsDir }),
    ...(scriptDir !== undefined && { scriptDir }),
  };
  const digest = digestOf(module, diskimage);
  if (today === undefined) {
    const unknown = [...missing, ...variables.missing, ...missingOptions];
    refuseIncomplete(recorded, unknown, digest === parameters['configuration-digest'], configuration);
  }
  return { ...diskimage, digest, module };
}
