import type { ImageFormat } from '../formats.ts';
import type { OperationOptions } from '../types.ts';

/** What an instance is launched from, and for. */
export interface LaunchRequest {
  /** The build that it is for; {@link InstanceProvider.list} tells it again. An image-id serves. */
  readonly buildId: string;
  /** The base image: a path where the provider works with files, else its name or id in the provider. */
  readonly image: string;
  /** Of a base image that is a file. Default: by its extension. */
  readonly format?: ImageFormat;
  /** The least memory it may have, in MiB (`min-ram`). Default: as the provider has it. */
  readonly minRam?: number;
  /** A part of the name of the flavors to choose from (`name-filter`), where the provider has flavors. Default: any. */
  readonly nameFilter?: string;
  /** Whose private key may log in, as a line of `authorized_keys`. The system in the base image puts it in place. */
  readonly publicKey: string;
  /** What cloud-init, or what the image has in its stead, is given to do. Default: nothing. */
  readonly userData?: string;
  /** The instance's TCP port that has to be reached: 22 for SSH, 5986 for WinRM. */
  readonly port: number;
}

/** Where a service of an instance is reached. */
export interface InstanceAddress {
  readonly host: string;
  readonly port: number;
}

/** Resolves if the service at the address answers, and rejects if it does not, or not yet. */
export type Probe = (address: InstanceAddress, signal: AbortSignal) => Promise<void>;

/**
 * How an instance is: being made; running; powered off, its disk whole; or failed, which is all else: it could not
 * be made, broke down, was ended from outside, is not there any more.
 */
export type InstanceState = 'starting' | 'running' | 'stopped' | 'failed';

/** What a captured image is called. */
export interface CaptureRequest {
  readonly imageId: string;
}

/** Settings of {@link CapturedImage.save}. */
export interface SaveOptions extends OperationOptions {
  /** The largest disk in bytes that is converted. Default 256 GiB. */
  readonly largestDisk?: number | undefined;
}

/** The disk of an instance as an image. */
export interface CapturedImage {
  /** The image's id in the provider, if it lies there now: it outlives the instance. */
  readonly externalId?: string;
  /** In what {@link save} writes, the best first. */
  readonly formats: readonly ImageFormat[];
  /**
   * Writes the image, which refers to no other file then. An image without {@link externalId} goes with its instance.
   *
   * @throws ImageError `image-too-large`, `disk-full`, `conversion-failed`
   */
  save(format: ImageFormat, path: string, options?: SaveOptions): Promise<void>;
}

/** A captured image that lies in the provider. */
export interface StoredCapture extends CapturedImage {
  readonly externalId: string;
  /** That of the {@link CaptureRequest}. */
  readonly imageId: string;
  readonly capturedAt: Date;
  /** Removes the image from the provider. */
  discard(options?: OperationOptions): Promise<void>;
}

/**
 * A machine that belongs to a build. All calls may be made by a process that comes after the one that launched it,
 * and reject with the reason of the signal once that aborts.
 */
export interface Instance {
  /** The provider's own id of it. */
  readonly id: string;
  readonly buildId: string;
  readonly launchedAt: Date;
  state(options?: OperationOptions): Promise<InstanceState>;
  /**
   * Where the port of the {@link LaunchRequest} is reached, whether something answers there or not.
   *
   * @throws ImageError `instance-failed`
   */
  address(options?: OperationOptions): Promise<InstanceAddress>;
  /**
   * Waits until `probe` is answered. There is no time limit but the signal's.
   *
   * @throws ImageError `instance-failed` once nothing can answer any more
   */
  waitReachable(probe: Probe, options?: OperationOptions): Promise<InstanceAddress>;
  /** The end of what the machine wrote to its serial console, as much as the provider keeps. */
  consoleLog(options?: OperationOptions): Promise<string>;
  /** Writes what the display shows to a PNG file. Absent where the provider cannot. */
  screenshot?(path: string, options?: OperationOptions): Promise<void>;
  /**
   * Asks the system to power off, as the power button does, and waits until it has. There is no time limit but the
   * signal's. An instance that is off stays off.
   *
   * @throws ImageError `instance-failed` if it ends in another way
   */
  stop(options?: OperationOptions): Promise<void>;
  /**
   * Waits until the system has powered off by itself.
   *
   * @throws ImageError `instance-failed` if it ends in another way
   */
  waitStopped(options?: OperationOptions): Promise<void>;
  /**
   * Makes an image of the disk of an instance that is stopped.
   *
   * @throws ImageError `instance-failed` for one that is not
   */
  capture(request: CaptureRequest, options?: OperationOptions): Promise<CapturedImage>;
  /**
   * Ends the instance, in whatever state, and removes all that was made for it. What is not there is no error.
   *
   * @throws ImageError `cleanup-failed`
   */
  destroy(options?: OperationOptions): Promise<void>;
}

/**
 * The narrow port to what runs machines. Every implementation passes `instanceProviderContract` of the `/testing`
 * entry.
 */
export interface InstanceProvider {
  /** `providers[].name`. */
  readonly name: string;
  /**
   * Makes an instance and has it begin to boot. From the first moment that it takes up anything {@link list} has it,
   * even if this process dies; a launch that fails or is aborted leaves none.
   *
   * @throws ImageError `launch-failed`, `image-not-found`, `format-unknown`, `command-not-found`, `disk-full`
   */
  launch(request: LaunchRequest, options?: OperationOptions): Promise<Instance>;
  /** The instances that this software launched here and did not destroy, by this process or one before it. */
  list(options?: OperationOptions): Promise<readonly Instance[]>;
  /**
   * The images that lie in the provider because {@link Instance.capture} made them, whole or not, by this process or
   * one before it, and that no upload has taken over. Absent where images go with their instances.
   */
  captures?(options?: OperationOptions): Promise<readonly StoredCapture[]>;
}
