! Names regions of an MPI program for pmmpi.
!
!     use pmmpi
!     call pmmpi_begin('solve')
!     ...
!     call pmmpi_end('solve')
!
! Both routines are collective over MPI_COMM_WORLD: every rank calls both, and each call waits for all other
! ranks. All ranks must call both routines, and all other collective routines on MPI_COMM_WORLD (also the
! non-blocking ones), in the same order. Regions may be nested. pmmpi uses only the first 63 bytes of a name,
! and records only the first 255 regions.
!
! Compile this file with the program. Without pmmpi both routines do nothing.
!
! SPDX-License-Identifier: MIT OR Apache-2.0
module pmmpi
  use, intrinsic :: iso_c_binding, only: c_associated, c_char, c_f_procpointer, c_funptr, c_null_char, &
      c_null_funptr, c_null_ptr, c_ptr
  implicit none
  private
  public :: pmmpi_begin, pmmpi_end

  abstract interface
    subroutine region_mark(name) bind(c)
      import :: c_char
      character(kind=c_char), intent(in) :: name(*)
    end subroutine
  end interface

  interface
    function dlsym(handle, name) bind(c, name='dlsym') result(address)
      import :: c_char, c_funptr, c_ptr
      type(c_ptr), value :: handle
      character(kind=c_char), intent(in) :: name(*)
      type(c_funptr) :: address
    end function
  end interface

  logical, save :: looked = .false.
  type(c_funptr), save :: marks(2) = c_null_funptr

contains

  subroutine pmmpi_begin(name)
    character(*), intent(in) :: name
    call at_mark(1, name)
  end subroutine

  subroutine pmmpi_end(name)
    character(*), intent(in) :: name
    call at_mark(2, name)
  end subroutine

  subroutine at_mark(which, name)
    integer, intent(in) :: which
    character(*), intent(in) :: name
    procedure(region_mark), pointer :: mark
    if (.not. looked) then
      marks(1) = dlsym(c_null_ptr, 'pmmpi_region_begin' // c_null_char)
      marks(2) = dlsym(c_null_ptr, 'pmmpi_region_end' // c_null_char)
      looked = .true.
    end if
    if (c_associated(marks(which))) then
      call c_f_procpointer(marks(which), mark)
      call mark(trim(name) // c_null_char)
    end if
  end subroutine

end module
